"""The nouns of discovery."""

from reachnode.model.discovery import REASONS_OF_DECLARATION, Candidate, Seen
from tests.registry.test_agents import parser
from tests.routing.seen import liveness


def test_a_candidate_is_known_by_its_instance() -> None:
    """Its id is that of the instance."""
    instance = parser("a1", "x")
    seen = Seen(instance=instance, index=1, state="healthy", liveness=liveness("a1"))
    candidate = Candidate(seen=seen, capability=instance.capabilities[0], score=1.0)
    assert candidate.agent_id == "a1"


def test_health_is_no_declaration() -> None:
    """What waiting may mend is told apart from what it can't."""
    assert not REASONS_OF_DECLARATION & {"state", "unreachable_from_here", "limit", "breaker"}
