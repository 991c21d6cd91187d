"""What commands do to instances that are down: mark them, take them back, forget them.

    "" ──MarkDown──> down ──down for `forget_after_ms` of cluster time, Forget──> gone
     └<──MarkUp, Register, or an announced state──┘

A command speaks of many instances at once. What doesn't fit any more is passed over, not
refused: another incarnation, one that is updating or disabled, one already marked. What was
announced on purpose stands over what was found.
"""

from msgspec.structs import replace

from reachnode.registry.agents import with_record, without
from reachnode.registry.commands import MARKS_MAX, Forget, Mark, MarkDown, MarkUp
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import Record, Standing, State


def mark_down(state: State, index: int, command: MarkDown) -> tuple[State, Outcome]:
    """Apply that instances were found down."""
    return _marked(state, index, command, before="", after="down")


def mark_up(state: State, index: int, command: MarkUp) -> tuple[State, Outcome]:
    """Apply that instances answer again."""
    return _marked(state, index, command, before="down", after="")


def forget(state: State, index: int, command: Forget) -> tuple[State, Outcome]:
    """Apply the end of instances that were down for long enough."""
    if len(command.marks) > MARKS_MAX:
        return state, _too_many(command.marks)
    changed = state
    for mark in command.marks:
        record = _meant(changed, mark)
        if record is not None and is_forgotten(changed, record):
            changed = without(changed, record)
    return changed, _counted(index, len(state.agents) - len(changed.agents))


def is_forgotten(state: State, record: Record) -> bool:
    """Return whether an instance has been down for as long as the settings say."""
    down_at_ms = record.down_at_ms
    after_ms = state.settings.registry.forget_after_ms
    return down_at_ms is not None and state.time_ms >= down_at_ms + after_ms


def _marked(
    state: State, index: int, command: MarkDown | MarkUp, *, before: Standing, after: Standing
) -> tuple[State, Outcome]:
    if len(command.marks) > MARKS_MAX:
        return state, _too_many(command.marks)
    down_at_ms = state.time_ms if after == "down" else None
    changed, count = state, 0
    for mark in command.marks:
        record = _meant(changed, mark)
        if record is not None and record.standing == before:
            marked = replace(record, index=index, standing=after, down_at_ms=down_at_ms)
            changed = with_record(changed, marked)
            count += 1
    return changed, _counted(index, count)


def _meant(state: State, mark: Mark) -> Record | None:
    record = state.agents.get(mark.agent_id)
    return record if record and record.instance.incarnation == mark.incarnation else None


def _counted(index: int, count: int) -> Applied:
    return Applied(index, {"changed": count})


def _too_many(marks: tuple[Mark, ...]) -> Refused:
    return Refused("invalid_request", f"{len(marks)} instances are more than {MARKS_MAX}")
