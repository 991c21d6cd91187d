"""Names that read like one that nobody declares: "did you mean intent.detect?".

One wrong letter leaves what stands before it and what stands behind it. So the names are kept
sorted twice, forwards and backwards, and only the neighbors of the asked name in either order
are compared with it: the work is the same at thirty names and at thirty thousand. What is
found is a hint, not a search.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

NEIGHBORS_MAX = 32
"""Names looked at in each order, half of them before and half behind."""
SUGGESTIONS_MAX = 5
LIKENESS_MIN = 0.4
ASKED_CHARACTERS_MAX = 128


class CloseNames:
    """The declared names, in two orders. Case doesn't count when they are compared.

    Args:
        names: Those declared at first, each once.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        folded = [(name.casefold(), name) for name in names]
        self._forwards = sorted(folded)
        self._backwards = sorted((text[::-1], name) for text, name in folded)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._forwards)

    def add(self, name: str) -> None:
        """Take a name that is declared now; one that is there already stays once."""
        folded = name.casefold()
        if not _has(self._forwards, (folded, name)):
            insort(self._forwards, (folded, name))
            insort(self._backwards, (folded[::-1], name))

    def discard(self, name: str) -> None:
        """Forget a name that nobody declares any more."""
        folded = name.casefold()
        if _has(self._forwards, (folded, name)):
            del self._forwards[bisect_left(self._forwards, (folded, name))]
            del self._backwards[bisect_left(self._backwards, (folded[::-1], name))]

    def close_to(self, asked: str) -> tuple[str, ...]:
        """Return the names most like one, the best first, equals by name; often none."""
        folded = asked[:ASKED_CHARACTERS_MAX].casefold()
        near = {
            name
            for order, text in ((self._forwards, folded), (self._backwards, folded[::-1]))
            for _, name in _neighbors(order, text)
        }
        pairs = pairs_of(folded)
        rated = sorted((-likeness(pairs, pairs_of(name.casefold())), name) for name in near)
        return tuple(name for rate, name in rated if -rate >= LIKENESS_MIN)[:SUGGESTIONS_MAX]


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of letter pairs that two names have in common, 0 to 1.

    Source:
        L. R. Dice, "Measures of the amount of ecologic association between species",
        Ecology 26 (1945), p. 297-302, over pairs of letters.
    """
    return 2 * len(one & other) / (len(one) + len(other))


def pairs_of(text: str) -> frozenset[str]:
    """Return each two letters that stand side by side, the ends marked by a blank."""
    framed = f" {text} "
    return frozenset(framed[at : at + 2] for at in range(len(framed) - 1))


def _neighbors(order: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Return what stands around the place where a text would be."""
    at = bisect_left(order, (text, ""))
    half = NEIGHBORS_MAX // 2
    return order[max(0, at - half) : at + half]


def _has(order: list[tuple[str, str]], entry: tuple[str, str]) -> bool:
    """Return whether a sorted list has an entry."""
    at = bisect_left(order, entry)
    return at < len(order) and order[at] == entry
