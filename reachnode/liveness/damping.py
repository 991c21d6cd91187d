"""Instances whose state flips again and again, held at `suspect` until they are quiet.

What is counted are the falls: from healthy to suspect or down. One too many within the window
and the instance is held: it goes on as a candidate of last resort, and when it is down it
isn't proposed as up again, until it hasn't fallen for the whole hold. A process that registers
anew is back at once all the same.
"""

from collections import deque

from reachnode.liveness.agenda import Agenda

FALLS_MAX = 3
"""So many falls within the window are taken as they come; one more is a flap."""
WINDOW_SECONDS = 120.0
HOLD_SECONDS = 60.0


class Damper:
    """The falls of late, and who is held for them. Only those who fell take room."""

    def __init__(self) -> None:
        self._fell_at: dict[str, deque[float]] = {}
        self._held: set[str] = set()
        self._ends = Agenda()

    def __len__(self) -> int:
        return len(self._fell_at)

    def is_held(self, agent_id: str) -> bool:
        """Return whether an instance is held for its flapping."""
        return agent_id in self._held

    def fell(self, agent_id: str, *, now: float) -> bool:
        """Count a fall; return whether the instance is held from now on.

        One that is held already is held for longer.
        """
        falls = self._fell_at.setdefault(agent_id, deque(maxlen=FALLS_MAX + 1))
        falls.append(now)
        was_held = agent_id in self._held
        if was_held or (len(falls) > FALLS_MAX and falls[0] > now - WINDOW_SECONDS):
            self._held.add(agent_id)
            self._ends.put(agent_id, now + HOLD_SECONDS)
        else:
            self._ends.put(agent_id, now + WINDOW_SECONDS)
        return not was_held and agent_id in self._held

    def released(self, now: float) -> tuple[str, ...]:
        """Return who is held no longer since this was last asked, and forget old falls."""
        found = []
        while (agent_id := self._ends.pop(now)) is not None:
            del self._fell_at[agent_id]
            if agent_id in self._held:
                self._held.discard(agent_id)
                found.append(agent_id)
        return tuple(found)

    def forget(self, agent_id: str) -> None:
        """Drop an instance that isn't registered any more."""
        self._fell_at.pop(agent_id, None)
        self._held.discard(agent_id)
        self._ends.drop(agent_id)
