"""The state at the founding."""

import pytest

from reachnode.model.settings import Settings
from reachnode.registry.state import REQUESTS_MAX, genesis


def test_a_founded_cluster_has_its_members_and_the_defaults() -> None:
    """The founders' disks are admitted, and nothing else is there."""
    state = genesis("c1", {"n1": "d1", "n2": "d2"})
    assert state.cluster_id == "c1"
    assert {name: one.incarnation for name, one in state.members.items()} == {
        "n1": "d1",
        "n2": "d2",
    }
    assert all(one.admitted_index == 0 and not one.retired for one in state.members.values())
    assert (state.settings, state.settings_revision, state.settings_index) == (Settings(), 0, 0)
    assert (len(state.agents), state.time_ms, state.level) == (0, 0, 1)
    assert state.requests_max == REQUESTS_MAX


def test_a_state_never_changes() -> None:
    """A reader may keep the one it was given."""
    with pytest.raises(AttributeError):
        genesis("c1", {}).time_ms = 5  # type: ignore[misc] # that it can't is the point


def test_the_order_of_the_founders_doesn_t_matter() -> None:
    """Founders that were listed in another order found the same state."""
    assert genesis("c1", {"n1": "a", "n2": "b"}) == genesis("c1", {"n2": "b", "n1": "a"})
