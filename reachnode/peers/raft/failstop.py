"""Stopping for damage: better no node than one that serves an empty or half table.

Each cause has an exit status of its own between 70 and 79 and a word, so that a service
manager, a script and a person can tell them apart. A full disk is no cause: it is a state.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a node stops by itself, and what its operator can do."""

    status: int
    word: str
    meaning: str
    remedy: str


CAUSES = (
    Cause(
        status=70,
        word="journal_damaged",
        meaning="A record of the journal fails its checksum, or a record is missing.",
        remedy="Move the data directory away, start empty, then `reachnode cluster replace ID`.",
    ),
    Cause(
        status=71,
        word="snapshot_damaged",
        meaning="The snapshot can't be read, or its checksum differs.",
        remedy="Move the data directory away, start empty, then `reachnode cluster replace ID`.",
    ),
    Cause(
        status=72,
        word="vote_damaged",
        meaning="The file with the term, the vote and the identity of the disk can't be read.",
        remedy="Move the data directory away, start empty, then `reachnode cluster replace ID`.",
    ),
    Cause(
        status=73,
        word="digest_mismatch",
        meaning="The table differs from the leader's at the same index.",
        remedy="Keep the data directory for a report, start empty, then "
        "`reachnode cluster replace ID`.",
    ),
    Cause(
        status=74,
        word="internal_fault",
        meaning="Something happened that must never happen: a fault of ours. The log has it.",
        remedy="Start the node again and report the log; nothing acknowledged is lost.",
    ),
    Cause(
        status=75,
        word="engine_mismatch",
        meaning="The installed consensus engine isn't the version this release was built for.",
        remedy="Install the pinned version: `pip install reachnode` resolves it.",
    ),
    Cause(
        status=76,
        word="format_unknown",
        meaning="The data directory was written by a release this one can't read.",
        remedy="Start the newer release again; going back is supported across one version.",
    ),
    Cause(
        status=77,
        word="identity_mismatch",
        meaning="The data directory belongs to another member or another cluster.",
        remedy="Check `node.id` and `node.data_dir`; a directory is never shared or renamed.",
    ),
    Cause(
        status=79,
        word="level_unknown",
        meaning="The cluster uses effects that this release doesn't know.",
        remedy="Install the release that the other members run.",
    ),
)
"""Every cause, by exit status. The reference page is made of it."""

CAUSE_BY_WORD = {cause.word: cause for cause in CAUSES}


class FailStop(Exception):
    """The node stops for damage; nothing it holds may be served.

    Args:
        status: The exit status, 70 to 79, that stands beside `word` in `CAUSES`.
        word: Which cause it is.
        message: What was found and where, for example with the byte offset.
    """

    def __init__(self, status: int, word: str, message: str) -> None:
        assert CAUSE_BY_WORD[word].status == status
        super().__init__(f"{word}: {message}")
        self.status = status
        self.word = word
        self.message = message

    @property
    def remedy(self) -> str:
        """Return what the operator can do."""
        return CAUSE_BY_WORD[self.word].remedy


def failstop(word: str, message: str) -> FailStop:
    """Return the error that ends the process with the status that goes with `word`."""
    return FailStop(CAUSE_BY_WORD[word].status, word, message)
