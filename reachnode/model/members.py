"""A voter of the cluster, as the log knows it."""

from reachnode.model.nouns import Noun

RETIRED_MAX = 8
"""How many incarnations of one member are remembered as retired, newest kept."""


class Member(Noun, frozen=True, kw_only=True):
    """A member and the one disk of it whose votes and acknowledgements count.

    A disk that was wiped comes back as another incarnation. It doesn't count until a logged
    change admits it, and from then on the former one never counts again.
    """

    member_id: str
    incarnation: str
    """The disk that is admitted."""
    admitted_index: int
    """The log index that admitted it; 0 for a founder."""
    retired: tuple[str, ...] = ()
    """Incarnations that were admitted before, oldest first."""
