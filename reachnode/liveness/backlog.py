"""Instances that are to be looked at again, each once, a few at a time."""

from collections import deque
from collections.abc import Iterable, Iterator


class Backlog:
    """A queue of names in which each stands once."""

    __slots__ = ("_names", "_queue")

    def __init__(self) -> None:
        self._queue: deque[str] = deque()
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, names: Iterable[str]) -> None:
        """Put names at the end, but those that wait already."""
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._queue.append(name)

    def take(self, most: int) -> Iterator[str]:
        """Yield the first names and take them out; what is added meanwhile comes another time."""
        for _ in range(min(most, len(self._queue))):
            name = self._queue.popleft()
            self._names.discard(name)
            yield name
