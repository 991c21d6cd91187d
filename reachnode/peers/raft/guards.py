"""What the engine gets wrong about messages, put right before it sees them.

Pure functions over one message and the log. Each names the fault it answers.
"""

import msgspec

from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.messages import Ack, Append


def trim_overlap(journal: Journal, message: Append) -> tuple[Append, bool]:
    """Return the message without entries that are held already, and whether to keep the tail.

    The engine cuts its log behind the previous index even where the entries are the same,
    and adds them again: a crash in between loses what was acknowledged (B19). It also lets
    the commit index rise to the end of its log, beyond what this message has verified;
    Raft (figure 2) allows the last new entry only.

    Returns:
        The message, and True when nothing in it justifies cutting the log.
    """
    index, term = message.previous_index, message.previous_term
    if journal.term_at(index) != term:
        return message, False
    entries = message.entries
    count = 0
    for _, entry_index, entry_term in entries:
        if journal.term_at(entry_index) != entry_term:
            break
        index, term = entry_index, entry_term
        count += 1
    left = entries[count:]
    trimmed = Append(
        message.term,
        min(message.commit_index, index + len(left)),
        index,
        term,
        left,
    )
    return trimmed, not left


def back_off(ack: Ack, journal: Journal, commit_index: int) -> Ack:
    """Return a refusal that says where the leader should go on.

    The engine answers "one entry earlier" each time, one heartbeat apart (B10). What is
    committed here is in the leader's log for certain, so the leader may go on behind it.
    """
    if not ack.reset or ack.next_index > journal.end:
        return ack
    return msgspec.structs.replace(ack, next_index=min(ack.next_index, commit_index + 1))
