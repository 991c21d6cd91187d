"""What was made of each instance last."""

from reachnode.liveness.seen import Conclusion, Seen
from reachnode.model.liveness import InstanceState, Liveness
from reachnode.registry.state import Record
from tests.liveness.crowds import instance


def record() -> Record:
    """Return what the log says, a new object each time, as after a logged change."""
    return Record(instance=instance("a1"), index=1)


def conclusion(state: InstanceState, of: Record) -> Conclusion:
    """Return what was made of an instance."""
    seen = Liveness(agent_id="a1", incarnation=1, state=state, why="", use="full", basis="own")
    return Conclusion(record=of, raw=state, liveness=seen)


def test_states_are_counted() -> None:
    """Each instance counts in the one state it is in now, and not at all once it is gone."""
    seen, of = Seen(), record()
    seen.put("a1", conclusion("pending", of))
    seen.put("b1", conclusion("healthy", of))
    assert seen.counts == {"healthy": 1, "pending": 1}
    seen.put("a1", conclusion("healthy", of))
    assert seen.counts == {"healthy": 2}
    seen.forget("a1")
    seen.forget("a1")
    assert seen.counts == {"healthy": 1}
    assert seen.get("a1") is None


def test_what_stirred_is_told_once_with_what_it_was() -> None:
    """A change of state is told with the state before the first of several changes."""
    seen, of = Seen(), record()
    for state in ("pending", "healthy", "healthy", "suspect"):
        seen.put("a1", conclusion(state, of))
    assert seen.stirred() == {"a1": "pending"}
    assert seen.stirred() == {}
    seen.put("a1", conclusion("healthy", of))
    seen.forget("a1")
    assert seen.stirred() == {}


def test_what_the_log_did_is_no_stir() -> None:
    """Whoever follows the log knows already."""
    seen = Seen()
    seen.put("a1", conclusion("healthy", record()))
    seen.put("a1", conclusion("down", record()))
    assert seen.stirred() == {}
