"""What watchers are told, at the cost of what changed."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import IndexExpired, ReachError, TooStale
from reachnode.model.agents import Instance
from reachnode.model.discovery import Change
from reachnode.model.liveness import InstanceState, Liveness
from reachnode.registry.apply import apply
from reachnode.registry.changes import (
    ChangeLog,
    Was,
    agents_of,
    changes_between,
    names_changed,
    note_changes,
    resumed_at,
    was_of,
)
from reachnode.registry.commands import (
    Advance,
    Command,
    Deregister,
    Envelope,
    Forget,
    Mark,
    MarkDown,
    MarkUp,
    PutSettings,
    RaiseLevel,
    Register,
    ReplaceMember,
    SetAgentState,
)
from reachnode.registry.queries import capability_of
from reachnode.registry.seen import unseen
from reachnode.registry.state import State
from reachnode.wire.changes import EventId
from tests.registry.test_agents import parser
from tests.routing.seen import liveness, told_by
from tests.strategies import CAPABILITIES, fresh_state, logs

Log = ChangeLog[Was | None]


def followed(log: Log, state: State, *commands: Command, start: int = 1) -> State:
    """Return the state after commands, one entry each, noted in a log of changes."""
    for index, command in enumerate(commands, start=start):
        envelope = Envelope(request_id=f"q{index}", since_index=index, command=command)
        after, _ = apply(state, index, envelope)
        note_changes(log, index, before=state, after=after, commands=[command])
        state = after
    return state


def told(
    log: Log,
    number: int,
    state: State,
    *,
    stirred: dict[str, InstanceState] | None = None,
    seen: dict[str, Liveness] | None = None,
    capability: str | None = None,
) -> tuple[Change, ...]:
    """Return what a watcher is told that was told up to a number."""
    changed = log.since(number)
    assert changed is not None
    return changes_between(
        changed,
        stirred or {},
        state=state,
        liveness_of=told_by(seen or {}),
        capability=capability,
    )


def kinds(changes: tuple[Change, ...]) -> list[tuple[str, str]]:
    """Return kind and instance of each change."""
    return [(one.kind, one.agent_id) for one in changes]


A1 = Register(instance=parser("a1", "x"))
A2 = Register(instance=parser("a2", "y"))
A1_AS_Y = Register(instance=parser("a1", "y"))
NO_A1 = Deregister(agent_id="a1")


def paused(agent_id: str, state: str = "updating") -> SetAgentState:
    """Return an announcement."""
    assert state in {"updating", "healthy", "disabled"}
    return SetAgentState(agent_id=agent_id, state=state)  # type: ignore[arg-type]  # asserted above


def test_each_instance_is_told_of_once() -> None:
    """Many changes of one are its last state, in the order of names."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A2, A1, A1_AS_Y, paused("a1"))
    changes = told(log, 0, state)
    assert kinds(changes) == [("put", "a1"), ("put", "a2")]
    assert changes[0].seen is not None
    assert changes[0].seen.state == "updating"
    assert changes[0].seen.instance.capabilities[0].name == "y"


def test_only_what_came_after_is_told() -> None:
    """Whoever knows an index hears what changed since, and nothing when nothing did."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, A2, NO_A1)
    assert kinds(told(log, 1, state)) == [("delete", "a1"), ("put", "a2")]
    assert kinds(told(log, 2, state)) == [("delete", "a1")]
    assert told(log, 3, state) == ()


def test_what_came_and_went_was_never_there() -> None:
    """A put and a delete after it are nothing, a delete and a put after it a put."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, NO_A1)
    assert told(log, 0, state) == ()
    state = followed(log, state, A1, start=3)
    assert kinds(told(log, 1, state)) == [("put", "a1")]


def test_an_announcement_is_a_change_of_state() -> None:
    """The registration stays, its state is news; there and back is none."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, paused("a1"))
    assert kinds(told(log, 1, state)) == [("state", "a1")]
    state = followed(log, state, paused("a1", "healthy"), start=3)
    assert told(log, 1, state) == ()


def test_a_refused_command_is_no_news() -> None:
    """What changed nothing isn't noted."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), NO_A1, paused("a1"), Advance(by_ms=1))
    assert log.since(0) == {}
    assert told(log, 0, state) == ()


def test_a_watcher_of_one_capability_hears_of_no_other() -> None:
    """An instance that begins to offer it is put, one that ceases is deleted."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, A2)
    assert kinds(told(log, 0, state, capability="x")) == [("put", "a1")]
    state = followed(log, state, A1_AS_Y, start=3)
    assert kinds(told(log, 2, state, capability="x")) == [("delete", "a1")]
    assert kinds(told(log, 2, state, capability="y")) == [("put", "a1")]
    state = followed(log, state, NO_A1, start=4)
    assert told(log, 3, state, capability="x") == ()


def test_what_is_seen_changes_states_too() -> None:
    """A flap that is over within one update isn't told; a lasting one is, once."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, A2)
    seen = {"a1": liveness("a1", "suspect"), "a2": liveness("a2", "healthy")}
    changes = told(log, 2, state, stirred={"a1": "healthy", "a2": "healthy"}, seen=seen)
    assert kinds(changes) == [("state", "a1")]
    assert changes[0].seen is not None
    assert changes[0].seen.state == "suspect"
    assert told(log, 2, state, stirred={"a1": "healthy"}, seen=seen, capability="y") == ()
    assert told(log, 2, state, stirred={"gone": "healthy"}) == ()


def test_an_announced_state_hides_what_is_seen() -> None:
    """While it is updating, its silence is no news; when that begins, it is told."""
    log: Log = ChangeLog(0)
    state = followed(log, fresh_state(), A1, paused("a1"))
    seen = {"a1": liveness("a1", "updating")}
    assert told(log, 2, state, stirred={"a1": "healthy"}, seen=seen) == ()
    assert kinds(told(log, 1, state, seen=seen)) == [("state", "a1")]


def test_what_is_no_longer_remembered_is_said() -> None:
    """A watcher from before the floor has to start over."""
    log: ChangeLog[int] = ChangeLog(10, changes_max=2)
    assert log.since(9) is None
    assert log.since(10) == {}
    for number in range(11, 15):
        log.note(number, f"k{number}", number)
    assert log.floor == 12
    assert log.since(11) is None
    assert log.since(12) == {"k13": 13, "k14": 14}
    assert log.since(14) == {}
    log.restart(20)
    assert log.since(19) is None
    assert log.since(20) == {}


def test_changes_of_one_number_stay_or_go_together() -> None:
    """Nobody hears half of what an entry did."""
    log: ChangeLog[int] = ChangeLog(0, changes_max=2)
    for number in (1, 2, 2, 2):
        log.note(number, f"k{number}", 0)
    assert log.floor == 2
    assert log.since(1) is None
    assert log.since(2) == {}


@pytest.mark.parametrize("wrong", [0, 4])
def test_numbers_never_fall(wrong: int) -> None:
    """What is noted out of order would be missed."""
    log: ChangeLog[int] = ChangeLog(0)
    log.note(5, "k", 0)
    with pytest.raises(AssertionError):
        log.note(wrong, "k", 0)


MARKS = (Mark(agent_id="a1", incarnation=1), Mark(agent_id="a2", incarnation=2))


@pytest.mark.parametrize(
    ("command", "agents"),
    [
        (A1, ("a1",)),
        (NO_A1, ("a1",)),
        (paused("a1"), ("a1",)),
        (MarkDown(marks=MARKS), ("a1", "a2")),
        (MarkUp(marks=MARKS), ("a1", "a2")),
        (Forget(marks=MARKS), ("a1", "a2")),
        (Advance(by_ms=1), ()),
    ],
)
def test_the_instances_of_a_command_are_named(command: Command, agents: tuple[str, ...]) -> None:
    """Whatever a command may change is looked at."""
    assert agents_of(command) == agents


def test_every_command_was_thought_of() -> None:
    """A new command that changes instances must be named in `agents_of`; others here."""
    of_instances = {Register, Deregister, SetAgentState, MarkDown, MarkUp, Forget}
    of_none = {PutSettings, Advance, ReplaceMember, RaiseLevel}
    assert set(get_args(Command)) == of_instances | of_none


def test_names_come_with_the_first_and_go_with_the_last() -> None:
    """A capability that two offer is news once, and gone once."""
    empty = fresh_state()
    one = followed(ChangeLog(0), empty, A1)
    two = followed(ChangeLog(1), one, Register(instance=parser("a2", "x")), start=2)
    assert names_changed(empty, one, ["a1"]) == (frozenset({"x"}), frozenset())
    assert names_changed(one, two, ["a2"]) == (frozenset(), frozenset())
    moved = followed(ChangeLog(2), two, A1_AS_Y, Deregister(agent_id="a2"), start=3)
    assert names_changed(two, moved, ["a1", "a2", "a9"]) == (frozenset({"y"}), frozenset({"x"}))


def test_whoever_applies_hears_what_changed() -> None:
    """The instances that an entry changed, each once."""
    before = followed(ChangeLog(0), fresh_state(), A1)
    after = followed(ChangeLog(1), before, A2, start=2)
    log: Log = ChangeLog(1)
    commands: list[Command] = [A2, paused("a2"), paused("a1"), NO_A1]
    assert note_changes(log, 2, before=before, after=after, commands=commands) == ("a2",)


def test_a_watch_goes_on_where_it_was() -> None:
    """From any index that is remembered, the last one included."""
    log: Log = ChangeLog(5)
    for index in (5, 7, 9):
        start = EventId(epoch=1, index=index, n=3)
        assert resumed_at(start, log, epoch=1, applied_index=9) == index


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (EventId(epoch=1, index=4, n=0), IndexExpired),
        (EventId(epoch=2, index=7, n=0), IndexExpired),
        (EventId(epoch=2, index=10**9, n=0), IndexExpired),
        (EventId(epoch=1, index=10, n=0), TooStale),
        (EventId(epoch=1, index=10**9, n=0), TooStale),
    ],
)
def test_a_watch_never_waits_for_what_may_not_come(start: EventId, error: type[ReachError]) -> None:
    """What is forgotten, of another life of the cluster, or ahead of this node is said so."""
    with pytest.raises(error):
        resumed_at(start, ChangeLog(5), epoch=1, applied_index=9)


def test_what_was_there_before_is_remembered_briefly() -> None:
    """Its incarnation, its names and what was announced; None for nobody."""
    state = followed(ChangeLog(0), fresh_state(), A1, paused("a1"))
    assert was_of(state.agents["a1"]) == Was(incarnation=1, names=("x",), standing="updating")
    assert was_of(None) is None


@given(logs, st.data(), st.sampled_from([None, *CAPABILITIES]))
def test_a_watcher_ends_with_the_table_itself(
    log: list[Envelope], data: st.DataObject, capability: str | None
) -> None:
    """However rarely it is told, putting and deleting what it hears gives what a reader sees.

    And it hears nothing twice: each change tells it something it didn't know.
    """
    changes_log: Log = ChangeLog(0)
    table: dict[str, tuple[Instance, str]] = {}
    state, upto = fresh_state(), 0
    for index, envelope in enumerate(log, start=1):
        after, _ = apply(state, index, envelope)
        note_changes(changes_log, index, before=state, after=after, commands=[envelope.command])
        state = after
        if index < len(log) and not data.draw(st.booleans()):
            continue
        changed = changes_log.since(upto)
        assert changed is not None
        for one in changes_between(
            changed, {}, state=state, liveness_of=unseen, capability=capability
        ):
            known = table.get(one.agent_id)
            if one.seen is None:
                assert known is not None
                del table[one.agent_id]
                continue
            now = (one.seen.instance, one.seen.state)
            assert (known is None or known[0] != now[0]) is (one.kind == "put")
            assert known != now
            table[one.agent_id] = now
        upto = index
    assert table == {
        agent_id: (record.instance, record.standing or "pending")
        for agent_id, record in state.agents.items()
        if capability is None or capability_of(record.instance, capability)
    }
