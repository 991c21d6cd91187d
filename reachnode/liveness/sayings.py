"""What this node has said of instances, in order: who changed after a peer last listened."""

PARTS_MAX = 500
"""How many reports one delta carries, about 40 KiB."""


class Sayings:
    """A running number for each instance this node has something to say of.

    What it says isn't kept here: whoever tells it looks it up at that moment, so that a peer
    that listens seldom gets the last word alone.
    """

    __slots__ = ("_sequence", "_sequences")

    def __init__(self) -> None:
        self._sequence = 0
        self._sequences: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sequences)

    @property
    def sequence(self) -> int:
        """The number of the last change."""
        return self._sequence

    def say(self, agent_id: str) -> None:
        """Note that what this node says of an instance has changed."""
        self._sequence += 1
        self._sequences.pop(agent_id, None)
        self._sequences[agent_id] = self._sequence

    def forget(self, agent_id: str) -> None:
        """Say nothing more of an instance; the peers forget it by the log, as this node does."""
        self._sequences.pop(agent_id, None)

    def since(
        self, sequence: int, *, most: int = PARTS_MAX
    ) -> tuple[tuple[tuple[str, int], ...], int]:
        """Return who changed after a sequence, oldest first, and up to which that is all.

        The cost goes by what changed. From 0 on it is everything, for a peer newly met.

        Args:
            sequence: Up to where the peer was told; one from the future tells everything.
            most: How many at most; when there are more, the peer asks on from there.
        """
        if sequence > self._sequence:
            sequence = 0
        changed = []
        for agent_id in reversed(self._sequences):
            if self._sequences[agent_id] <= sequence:
                break
            changed.append((agent_id, self._sequences[agent_id]))
        told = tuple(reversed(changed))
        if len(told) <= most:
            return told, self._sequence
        return told[:most], told[most - 1][1]
