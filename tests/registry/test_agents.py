"""What commands do to instances."""

from hypothesis import given
from immutables import Map

from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.model.settings import RegistryRules, Settings
from reachnode.registry.agents import deregister, offered, owner, register, set_agent_state
from reachnode.registry.cluster import put_settings
from reachnode.registry.commands import (
    AnnouncedState,
    Command,
    Deregister,
    PutSettings,
    Register,
    SetAgentState,
)
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import Standing, State
from tests.strategies import fresh_state, states

EXCLUSIVE = Settings(registry=RegistryRules(capability_names="exclusive"))


def parser(agent_id: str, *names: str, agent: str = "nlp", base_url: str = "") -> Instance:
    """Return an instance that offers some capabilities, `intent.detect` when none is said."""
    return Instance(
        agent_id=agent_id,
        agent=agent,
        base_url=base_url,
        capabilities=tuple(
            Capability(name=name, protocol="rest", endpoint=f"http://10.0.0.7/{name}")
            for name in names or ("intent.detect",)
        ),
    )


def done(state: State, *commands: Command) -> State:
    """Return the state after commands that must all be applied, at indexes from 1."""
    for index, command in enumerate(commands, start=1):
        state, outcome = effect(state, index, command)
        assert isinstance(outcome, Applied), outcome
    return state


def effect(state: State, index: int, command: Command) -> tuple[State, Outcome]:
    """Return what a command of this room does."""
    match command:
        case Register():
            return register(state, index, command)
        case Deregister():
            return deregister(state, index, command)
        case SetAgentState():
            return set_agent_state(state, index, command)
        case _:
            assert isinstance(command, PutSettings)
            return put_settings(state, index, command)


def exclusive() -> State:
    """Return a state whose capability names are exclusive."""
    return done(fresh_state(), PutSettings(document=EXCLUSIVE))


def refusal(state: State, command: Command) -> Refused:
    """Return why a command is refused; the state must be left alone."""
    after, outcome = effect(state, 9, command)
    assert after is state
    assert isinstance(outcome, Refused), outcome
    return outcome


def test_a_new_instance_gets_an_incarnation() -> None:
    """Registering tells the instance what it is from now on."""
    state, outcome = register(fresh_state(), 5, Register(instance=parser("a1")))
    assert outcome == Applied(5, {"agent_id": "a1", "incarnation": 1, "replaced": False})
    record = state.agents["a1"]
    assert (record.index, record.standing, record.instance.incarnation) == (5, "", 1)
    assert state.capabilities == Map({"intent.detect": Map({"a1": "nlp"})})


def test_incarnations_only_rise() -> None:
    """No instance ever gets a number that was given before, even under another name."""
    state = done(
        fresh_state(),
        Register(instance=parser("a1")),
        Register(instance=parser("b1")),
        Deregister(agent_id="a1"),
        Register(instance=parser("a1")),
    )
    assert state.agents["b1"].instance.incarnation == 2
    assert state.agents["a1"].instance.incarnation == 3


def test_a_replacement_is_one_step() -> None:
    """What the instance no longer offers is gone in the same step in which the new is there."""
    state = done(fresh_state(), Register(instance=parser("a1", "x", "z")))
    state, outcome = register(state, 2, Register(instance=parser("a1", "y", "z")))
    assert outcome == Applied(2, {"agent_id": "a1", "incarnation": 2, "replaced": True})
    assert state.capabilities == Map({"y": Map({"a1": "nlp"}), "z": Map({"a1": "nlp"})})


def test_a_registration_looks_before_it_replaces() -> None:
    """Of two that saw the same instance, the later is refused and told who came first."""
    state = done(
        fresh_state(), Register(instance=parser("a1", base_url="http://10.0.0.7"), replaces=0)
    )
    refused = refusal(state, Register(instance=parser("a1", "y"), replaces=0))
    assert refused.code == "agent_id_in_use"
    assert refused.why == "a1 was registered meanwhile, at http://10.0.0.7"
    assert refused.details == {"incarnation": 1, "endpoint": "http://10.0.0.7"}
    done(state, Register(instance=parser("a1"), replaces=1))
    done(state, Register(instance=parser("a1")))


def test_the_holder_is_named_by_what_it_has() -> None:
    """Without a base address the first endpoint tells who holds the id."""
    state = done(fresh_state(), Register(instance=parser("a1", "y")))
    refused = refusal(state, Register(instance=parser("a1"), replaces=7))
    assert refused.why.endswith("at http://10.0.0.7/y")
    bare = done(fresh_state(), Register(instance=Instance(agent_id="a1", agent="nlp")))
    refused = refusal(bare, Register(instance=parser("a1"), replaces=7))
    assert refused.why.endswith("at no endpoint")


def test_who_is_gone_is_in_nobody_s_way() -> None:
    """An instance that left between the look and the registration doesn't hinder it."""
    done(fresh_state(), Register(instance=parser("a1"), replaces=7))


def test_a_capability_twice_is_refused() -> None:
    """One registration names a capability once."""
    refused = refusal(fresh_state(), Register(instance=parser("a1", "x", "x")))
    assert refused.code == "duplicate_capability"


def test_shared_names_are_anybody_s() -> None:
    """By default many agents may offer one capability."""
    state = done(
        fresh_state(),
        Register(instance=parser("a1")),
        Register(instance=parser("b1", agent="rival")),
    )
    assert state.capabilities["intent.detect"] == Map({"a1": "nlp", "b1": "rival"})


def test_an_exclusive_name_belongs_to_the_first_agent() -> None:
    """Another agent is refused whole and told who owns the name; the owner's instances share."""
    state = done(exclusive(), Register(instance=parser("a1")), Register(instance=parser("a2")))
    refused = refusal(state, Register(instance=parser("b1", "y", "intent.detect", agent="rival")))
    assert refused.code == "capability_taken"
    assert refused.why == "intent.detect belongs to nlp"
    assert refused.details == {"capability": "intent.detect", "agent": "nlp"}


def test_an_exclusive_name_is_free_when_nobody_offers_it() -> None:
    """The name goes back when the owner's last instance that offers it is gone."""
    rival = Register(instance=parser("b1", agent="rival"))
    state = done(
        exclusive(),
        Register(instance=parser("a1")),
        Register(instance=parser("a2")),
        Deregister(agent_id="a1"),
    )
    assert refusal(state, rival).code == "capability_taken"
    done(done(state, Register(instance=parser("a2", "y"))), rival)
    done(done(state, Deregister(agent_id="a2")), rival)


def test_an_instance_may_change_its_agent_alone() -> None:
    """The only instance that offers a name takes it along to another agent; one of two doesn't."""
    moved = Register(instance=parser("a1", agent="rival"))
    state = done(exclusive(), Register(instance=parser("a1")))
    assert done(state, moved).capabilities["intent.detect"] == Map({"a1": "rival"})
    state = done(state, Register(instance=parser("a2")))
    assert refusal(state, moved).code == "capability_taken"


def test_an_owner_is_found_among_the_others() -> None:
    """Whoever is about to be replaced doesn't own a name against itself."""
    state = done(exclusive(), Register(instance=parser("a1")))
    assert owner(state, "intent.detect", besides="a2") == "nlp"
    assert owner(state, "intent.detect", besides="a1") is None
    assert owner(state, "nothing", besides="a1") is None


def test_disabled_outlives_a_restart_and_updating_ends_with_it() -> None:
    """An operator's word stands until it is taken back; an update is over when it registers."""
    again = Register(instance=parser("a1"))
    expected: dict[AnnouncedState, Standing] = {
        "disabled": "disabled",
        "updating": "",
        "healthy": "",
    }
    for announced, standing in expected.items():
        state = done(fresh_state(), again, SetAgentState(agent_id="a1", state=announced), again)
        assert state.agents["a1"].standing == standing


def test_an_announced_state_is_kept() -> None:
    """The record says what was announced and when; saying it again changes nothing."""
    updating = SetAgentState(agent_id="a1", state="updating", incarnation=1)
    state = done(fresh_state(), Register(instance=parser("a1")))
    once, outcome = set_agent_state(state, 2, updating)
    assert outcome == Applied(2)
    assert (once.agents["a1"].standing, once.agents["a1"].index) == ("updating", 2)
    twice, outcome = set_agent_state(once, 3, updating)
    assert outcome == Applied(3)
    assert twice is once


def test_a_farewell_takes_everything_along() -> None:
    """Nothing is left of an instance that left."""
    state = done(fresh_state(), Register(instance=parser("a1", "x", "y")))
    state = done(state, Deregister(agent_id="a1", incarnation=1))
    assert (len(state.agents), len(state.capabilities)) == (0, 0)


def test_a_late_word_of_an_old_incarnation_is_superseded() -> None:
    """A process that was replaced can't remove or drain its successor."""
    again = Register(instance=parser("a1"))
    state = done(fresh_state(), again, again)
    for late in (
        Deregister(agent_id="a1", incarnation=1),
        SetAgentState(agent_id="a1", state="updating", incarnation=1),
    ):
        refused = refusal(state, late)
        assert (refused.code, refused.details) == ("superseded", {"incarnation": 2})


def test_an_unknown_instance_is_told_so() -> None:
    """It must register again."""
    for command in (Deregister(agent_id="a9"), SetAgentState(agent_id="a9", state="healthy")):
        assert refusal(fresh_state(), command).code == "unknown_agent"


@given(states)
def test_the_index_says_what_the_instances_say(state: State) -> None:
    """Who offers a capability is always exactly who registered it."""
    expected: Map[str, Map[str, str]] = Map()
    for record in state.agents.values():
        expected = offered(expected, None, record.instance)
    assert state.capabilities == expected


@given(states)
def test_the_index_says_who_is_down(state: State) -> None:
    """Who is down, and since when, is always exactly what the records say."""
    assert dict(state.down) == {
        agent_id: record.down_at_ms
        for agent_id, record in state.agents.items()
        if record.standing == "down"
    }
    assert all(
        (record.down_at_ms is None) == (record.standing != "down")
        for record in state.agents.values()
    )


@given(states)
def test_exclusive_names_have_one_owner(state: State) -> None:
    """While names are exclusive, no two agents offer one capability."""
    if state.settings.registry.capability_names == "exclusive":
        assert all(len(set(offers.values())) == 1 for offers in state.capabilities.values())
