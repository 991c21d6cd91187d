"""What a node is about to propose of instances that went down or came back."""

from collections.abc import Callable

from reachnode.registry.commands import MARKS_MAX, Mark, MarkDown, MarkUp


class Proposals:
    """Marks that wait to be proposed together, the last of each instance."""

    __slots__ = ("_down", "_up")

    def __init__(self) -> None:
        self._down: dict[str, Mark] = {}
        self._up: dict[str, Mark] = {}

    def down(self, agent_id: str, incarnation: int) -> None:
        """Let an instance be proposed as down."""
        self._down[agent_id] = Mark(agent_id=agent_id, incarnation=incarnation)

    def up(self, agent_id: str, incarnation: int) -> None:
        """Let an instance be proposed as no longer down."""
        self._up[agent_id] = Mark(agent_id=agent_id, incarnation=incarnation)

    def forget(self, agent_id: str) -> None:
        """Propose nothing of an instance."""
        self._down.pop(agent_id, None)
        self._up.pop(agent_id, None)

    def take(
        self, *, is_down: Callable[[str, int], bool], is_up: Callable[[str, int], bool]
    ) -> tuple[MarkDown | MarkUp, ...]:
        """Return what is proposed now, and keep nothing.

        What doesn't fit into a batch, or isn't accepted, comes up again with the next probe
        or heartbeat.

        Args:
            is_down: Whether a mark as down still fits, of an `agent_id` and an incarnation.
            is_up: Whether a mark as up still does.
        """
        down = [one for _, one in sorted(self._down.items()) if is_down(*_of(one))]
        up = [one for _, one in sorted(self._up.items()) if is_up(*_of(one))]
        self._down.clear()
        self._up.clear()
        commands: list[MarkDown | MarkUp] = []
        if down:
            commands.append(MarkDown(marks=tuple(down[:MARKS_MAX])))
        if up:
            commands.append(MarkUp(marks=tuple(up[:MARKS_MAX])))
        return tuple(commands)


def _of(mark: Mark) -> tuple[str, int]:
    return mark.agent_id, mark.incarnation
