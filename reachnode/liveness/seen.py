"""What was made of each instance last: an answer for readers, and what has changed since."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from reachnode.model.liveness import InstanceState, Liveness
from reachnode.registry.state import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What was made of an instance, and of what."""

    record: Record
    raw: InstanceState
    """The state before flapping was damped."""
    liveness: Liveness


class Seen:
    """The last conclusion of each instance, counted by state."""

    def __init__(self) -> None:
        self._conclusions: dict[str, Conclusion] = {}
        self._counts: Counter[InstanceState] = Counter()
        self._stirred: dict[str, InstanceState] = {}

    @property
    def counts(self) -> Mapping[InstanceState, int]:
        """How many instances are in each state, by its name; those with none left out."""
        return {state: count for state, count in sorted(self._counts.items()) if count}

    def get(self, agent_id: str) -> Conclusion | None:
        """Return what was made of an instance, None before anything was."""
        return self._conclusions.get(agent_id)

    def put(self, agent_id: str, conclusion: Conclusion) -> None:
        """Keep what was made of an instance.

        A change of state counts as stirred, unless the log made it: whoever follows the log
        knows already.
        """
        before = self._conclusions.get(agent_id)
        self._conclusions[agent_id] = conclusion
        state = conclusion.liveness.state
        self._counts[state] += 1
        if before is None:
            return
        was = before.liveness.state
        self._counts[was] -= 1
        if was != state and before.record is conclusion.record:
            self._stirred.setdefault(agent_id, was)

    def forget(self, agent_id: str) -> None:
        """Drop an instance."""
        before = self._conclusions.pop(agent_id, None)
        self._stirred.pop(agent_id, None)
        if before is not None:
            self._counts[before.liveness.state] -= 1

    def stirred(self) -> dict[str, InstanceState]:
        """Return whose state changed since this was last asked, with the state before."""
        stirred, self._stirred = self._stirred, {}
        return stirred
