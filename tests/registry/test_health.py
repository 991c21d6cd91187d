"""What commands do to instances that are down."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.model.settings import RegistryRules, Settings, SettingsRevision
from reachnode.registry.agents import deregister, register, set_agent_state
from reachnode.registry.commands import (
    MARKS_MAX,
    Deregister,
    Forget,
    Mark,
    MarkDown,
    MarkUp,
    Register,
    SetAgentState,
)
from reachnode.registry.health import forget, mark_down, mark_up
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import State
from tests.registry.test_agents import parser
from tests.strategies import fresh_state, marks, states


def marked(*agent_ids: str, incarnation: int = 1) -> tuple[Mark, ...]:
    """Return marks of one incarnation."""
    return tuple(Mark(agent_id=agent_id, incarnation=incarnation) for agent_id in agent_ids)


def at(state: State, time_ms: int) -> State:
    """Return a state at another cluster time."""
    return replace(state, time_ms=time_ms)


def one() -> State:
    """Return a state with one instance, a1 at incarnation 1, at 5 s of cluster time."""
    state, _ = register(fresh_state(), 1, Register(instance=parser("a1")))
    return at(state, 5_000)


def down() -> State:
    """Return the same after the instance was found down."""
    return mark_down(one(), 2, MarkDown(marks=marked("a1")))[0]


def test_it_is_down_until_it_is_up() -> None:
    """The record says that it is down and since when; up again leaves no trace."""
    state, outcome = mark_down(one(), 2, MarkDown(marks=marked("a1")))
    assert outcome == Applied(2, {"changed": 1})
    record = state.agents["a1"]
    assert (record.standing, record.down_at_ms, record.index) == ("down", 5_000, 2)
    assert dict(state.down) == {"a1": 5_000}
    state, outcome = mark_up(at(state, 9_000), 3, MarkUp(marks=marked("a1")))
    assert outcome == Applied(3, {"changed": 1})
    record = state.agents["a1"]
    assert (record.standing, record.down_at_ms, record.index) == ("", None, 3)
    assert len(state.down) == 0


def test_saying_it_twice_changes_nothing() -> None:
    """The time since which it is down stays, and so does the index: nothing for a watcher."""
    twice, outcome = mark_down(at(down(), 9_000), 3, MarkDown(marks=marked("a1", "a1")))
    assert outcome == Applied(3, {"changed": 0})
    assert twice.agents["a1"].index == 2
    up, outcome = mark_up(one(), 2, MarkUp(marks=marked("a1")))
    assert outcome == Applied(2, {"changed": 0})
    assert up.agents["a1"].index == 1


def test_only_who_is_meant_is_marked() -> None:
    """A successor or a stranger isn't down because somebody else was."""
    for marks_of_others in (marked("a1", incarnation=2), marked("a9")):
        state = one()
        assert mark_down(state, 2, MarkDown(marks=marks_of_others)) == (
            state,
            Applied(2, {"changed": 0}),
        )
        assert mark_up(down(), 3, MarkUp(marks=marks_of_others))[0] == down()
        long_after = at(down(), 10**9)
        assert forget(long_after, 3, Forget(marks=marks_of_others))[0] is long_after


def test_what_was_announced_stands_over_what_was_found() -> None:
    """Whoever was taken out on purpose isn't marked; being down ends with an announcement."""
    for announced in ("updating", "disabled"):
        said = SetAgentState(agent_id="a1", state=announced)
        state, _ = set_agent_state(one(), 2, said)
        assert mark_down(state, 3, MarkDown(marks=marked("a1")))[0] is state
        state, _ = set_agent_state(down(), 3, said)
        assert (state.agents["a1"].standing, state.agents["a1"].down_at_ms) == (announced, None)
        assert len(state.down) == 0
    state, _ = set_agent_state(down(), 3, SetAgentState(agent_id="a1", state="healthy"))
    assert (state.agents["a1"].standing, len(state.down)) == ("", 0)


def test_who_registers_again_is_back_at_once() -> None:
    """A restarted process isn't held to what befell its predecessor."""
    state, _ = register(down(), 3, Register(instance=parser("a1")))
    assert (state.agents["a1"].standing, state.agents["a1"].down_at_ms) == ("", None)
    assert len(state.down) == 0


def test_a_farewell_ends_it_too() -> None:
    """Nothing is left of an instance that was down and left."""
    state, _ = deregister(down(), 3, Deregister(agent_id="a1"))
    assert (len(state.agents), len(state.down), len(state.capabilities)) == (0, 0, 0)


def test_it_is_forgotten_after_its_time() -> None:
    """Ten minutes of cluster time after it was found down it may be removed, not before."""
    ask = Forget(marks=marked("a1"))
    early = at(down(), 5_000 + 599_999)
    assert forget(early, 3, ask) == (early, Applied(3, {"changed": 0}))
    state, outcome = forget(at(down(), 5_000 + 600_000), 3, ask)
    assert outcome == Applied(3, {"changed": 1})
    assert (len(state.agents), len(state.down), len(state.capabilities)) == (0, 0, 0)


def test_who_isn_t_down_is_never_forgotten() -> None:
    """However late the command, an instance that is up stays."""
    state = at(mark_up(down(), 3, MarkUp(marks=marked("a1")))[0], 10**9)
    assert forget(state, 4, Forget(marks=marked("a1")))[0] is state


def test_the_settings_say_how_long() -> None:
    """The time that holds when the command is applied is the one that counts."""
    settings = Settings(registry=RegistryRules(forget_after_ms=1_000))
    state = replace(
        at(down(), 6_000),
        settings_history=(SettingsRevision(revision=1, index=2, settings=settings),),
    )
    assert forget(state, 3, Forget(marks=marked("a1")))[1] == Applied(3, {"changed": 1})


def test_a_batch_has_a_size() -> None:
    """One command speaks of a bounded number of instances, or is refused whole."""
    state = one()
    many = marked("a1") * (MARKS_MAX + 1)
    for changed, outcome in (
        mark_down(state, 2, MarkDown(marks=many)),
        mark_up(state, 2, MarkUp(marks=many)),
        forget(state, 2, Forget(marks=many)),
    ):
        assert changed is state
        assert isinstance(outcome, Refused)
        assert outcome.why == "1001 instances are more than 1000"
    assert isinstance(mark_down(state, 2, MarkDown(marks=many[1:]))[1], Applied)


@given(states, marks, st.permutations(range(4)))
def test_the_order_in_a_batch_doesn_t_matter(
    state: State, some: tuple[Mark, ...], order: list[int]
) -> None:
    """A batch says what is down, whoever comes first in it."""
    other = tuple(some[place] for place in order if place < len(some))
    assert mark_down(state, 50, MarkDown(marks=some)) == mark_down(state, 50, MarkDown(marks=other))
    assert mark_up(state, 50, MarkUp(marks=some)) == mark_up(state, 50, MarkUp(marks=other))
    later = at(state, 10**9)
    assert forget(later, 50, Forget(marks=some)) == forget(later, 50, Forget(marks=other))
