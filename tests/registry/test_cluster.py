"""What commands do to the cluster itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.members import RETIRED_MAX
from reachnode.model.settings import ProbeRules, RegistryRules, Settings
from reachnode.registry.agents import register
from reachnode.registry.cluster import (
    advance,
    put_settings,
    raise_level,
    replace_member,
)
from reachnode.registry.commands import (
    Advance,
    Envelope,
    PutSettings,
    RaiseLevel,
    Register,
    ReplaceMember,
)
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import HISTORY_MAX, State
from tests.registry.test_agents import parser
from tests.strategies import DISKS, after, envelopes, fresh_state

EXCLUSIVE = Settings(registry=RegistryRules(capability_names="exclusive"))


def failures(count: int) -> Settings:
    """Return settings that differ by one number."""
    return Settings(probes=ProbeRules(failures=count))


def test_settings_are_swapped_whole() -> None:
    """The document that was put holds, with a revision and the index that made it."""
    state, outcome = put_settings(fresh_state(), 7, PutSettings(document=failures(5)))
    assert outcome == Applied(7, {"revision": 1})
    assert (state.settings, state.settings_revision, state.settings_index) == (failures(5), 1, 7)


def test_a_revision_guards_the_settings() -> None:
    """Of two that read the same revision, the later is refused and told the new one."""
    state, _ = put_settings(fresh_state(), 1, PutSettings(document=failures(5), revision=0))
    after_it, outcome = put_settings(state, 2, PutSettings(document=failures(6), revision=0))
    assert after_it is state
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.details) == ("revision_conflict", {"revision": 1})
    assert outcome.why == "the settings are at revision 1, not 0"


def test_the_same_settings_make_no_revision() -> None:
    """Applying one file every hour doesn't push the history out."""
    state, _ = put_settings(fresh_state(), 1, PutSettings(document=failures(5)))
    again, outcome = put_settings(state, 2, PutSettings(document=failures(5), revision=1))
    assert again is state
    assert outcome == Applied(2, {"revision": 1})


def test_the_history_is_bounded() -> None:
    """The last twenty revisions are kept, the current one included."""
    state = fresh_state()
    for count in range(1, 31):
        state, _ = put_settings(state, count, PutSettings(document=failures(count + 3)))
    assert [kept.revision for kept in state.settings_history] == list(range(11, 31))
    assert len(state.settings_history) == HISTORY_MAX
    assert state.settings == failures(33)


def test_names_become_exclusive_only_without_rivals() -> None:
    """A capability that two agents offer is named, with both; one agent's instances are fine."""
    state, _ = register(fresh_state(), 1, Register(instance=parser("a1")))
    state, _ = register(state, 2, Register(instance=parser("a2")))
    put = PutSettings(document=EXCLUSIVE)
    assert isinstance(put_settings(state, 3, put)[1], Applied)
    state, _ = register(state, 3, Register(instance=parser("b1", agent="rival")))
    after_it, outcome = put_settings(state, 4, put)
    assert after_it is state
    assert isinstance(outcome, Refused)
    assert outcome.code == "capability_taken"
    assert outcome.details == {"capability": "intent.detect", "agents": ["nlp", "rival"]}


@pytest.mark.parametrize("by_ms", [1, 2_000])
def test_cluster_time_moves_by_steps(by_ms: int) -> None:
    """A step within the bounds adds up."""
    state, _ = advance(fresh_state(), 1, Advance(by_ms=500))
    state, outcome = advance(state, 2, Advance(by_ms=by_ms))
    assert state.time_ms == 500 + by_ms
    assert outcome == Applied(2, {"time_ms": 500 + by_ms})


@pytest.mark.parametrize("by_ms", [-1, 0, 2_001])
def test_cluster_time_neither_leaps_nor_falls(by_ms: int) -> None:
    """A leader whose clock jumped can't make everything expire at once."""
    state = fresh_state()
    after_it, outcome = advance(state, 1, Advance(by_ms=by_ms))
    assert after_it is state
    assert isinstance(outcome, Refused)
    assert outcome.code == "invalid_request"


def test_a_new_disk_is_admitted_and_the_old_one_retired() -> None:
    """From that index on only the new incarnation counts."""
    state, outcome = replace_member(
        fresh_state(), 5, ReplaceMember(member_id="n1", incarnation="d1")
    )
    assert outcome == Applied(5, {"admitted_index": 5})
    member = state.members["n1"]
    assert (member.incarnation, member.admitted_index, member.retired) == ("d1", 5, ("d0",))


def test_admitting_again_changes_nothing() -> None:
    """A repeat is answered with the index that admitted it first."""
    admit = ReplaceMember(member_id="n1", incarnation="d1")
    state, _ = replace_member(fresh_state(), 5, admit)
    again, outcome = replace_member(state, 6, admit)
    assert again is state
    assert outcome == Applied(6, {"admitted_index": 5})


def test_a_retired_disk_never_comes_back() -> None:
    """What was replaced is refused: it may have forgotten what it once acknowledged."""
    state, _ = replace_member(fresh_state(), 5, ReplaceMember(member_id="n1", incarnation="d1"))
    again, outcome = replace_member(state, 6, ReplaceMember(member_id="n1", incarnation="d0"))
    assert again is state
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.details) == ("superseded", {"incarnation": "d1"})


def test_nothing_comes_between_looking_and_replacing() -> None:
    """A replacement that follows an older one than the newest is refused, to be looked at anew."""
    first = ReplaceMember(member_id="n1", incarnation="d1", follows=0)
    state, outcome = replace_member(fresh_state(), 5, first)
    assert isinstance(outcome, Applied)
    late = ReplaceMember(member_id="n2", incarnation="d1", follows=0)
    after_it, outcome = replace_member(state, 6, late)
    assert after_it is state
    assert isinstance(outcome, Refused)
    assert outcome.code == "cluster_changing"
    after_it, outcome = replace_member(
        state, 7, ReplaceMember(member_id="n2", incarnation="d1", follows=5)
    )
    assert isinstance(outcome, Applied)


def test_a_stranger_is_no_member() -> None:
    """A disk is admitted only for a member that is known."""
    outcome = replace_member(fresh_state(), 5, ReplaceMember(member_id="n9", incarnation="d1"))[1]
    assert isinstance(outcome, Refused)
    assert outcome.code == "unknown_member"


def test_the_retired_are_bounded() -> None:
    """The newest eight retired disks of a member are remembered."""
    state = fresh_state()
    for at in range(1, 12):
        state, _ = replace_member(state, at, ReplaceMember(member_id="n1", incarnation=f"d{at}"))
    assert state.members["n1"].retired == tuple(f"d{at}" for at in range(3, 11))
    assert len(state.members["n1"].retired) == RETIRED_MAX


@given(st.lists(envelopes, max_size=30), st.lists(st.sampled_from(DISKS), max_size=20))
def test_two_disks_of_a_member_are_never_both_admitted(
    log: list[Envelope], disks: list[str]
) -> None:
    """Whatever is admitted, a disk counts or is retired, never both, and never comes back."""
    state: State = after(log)
    gone: set[str] = set()
    for index, disk in enumerate(disks, start=len(log) + 1):
        state, _ = replace_member(state, index, ReplaceMember(member_id="n1", incarnation=disk))
        member = state.members["n1"]
        gone.update(member.retired)
        assert member.incarnation not in gone


def test_the_level_rises_by_one() -> None:
    """One step up is applied; the level that holds is no change; anything else is refused."""
    state, outcome = raise_level(fresh_state(), 1, RaiseLevel(level=2))
    assert (state.level, outcome) == (2, Applied(1, {"level": 2}))
    again, outcome = raise_level(state, 2, RaiseLevel(level=2))
    assert again is state
    assert outcome == Applied(2, {"level": 2})
    for level in (1, 4):
        refused = raise_level(state, 3, RaiseLevel(level=level))[1]
        assert isinstance(refused, Refused)
        assert (refused.code, refused.details) == ("invalid_request", {"level": 2})
