"""Who else serves a capability: what an instance's absence would leave uncovered.

Only what the log says counts here. Whether the others are well is seen by each node for
itself, and is no ground to hold an operator up.
"""

from reachnode.registry.queries import offering
from reachnode.registry.state import Record, State


def uncovered(state: State, record: Record) -> tuple[str, ...]:
    """Return the capabilities that nobody would serve without an instance, sorted.

    An instance that is updating, disabled or down serves nothing, so it leaves nothing
    uncovered and covers nothing.
    """
    if record.standing:
        return ()
    agent_id = record.instance.agent_id
    return tuple(
        sorted(
            capability.name
            for capability in record.instance.capabilities
            if not any(
                other != agent_id and not state.agents[other].standing
                for other in offering(state, capability.name)
            )
        )
    )
