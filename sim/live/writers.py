"""Clients that change the registry over HTTP, and remember every word they were told.

Each repeats a change under the same key, at whichever node answers, until it is confirmed
or the run gives up on it. So a change is confirmed, refused for good, or left open.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from sim.live.client import Connection, Lost, Place, request_bytes

ATTEMPT_SECONDS = 8.0
"""Longer than a node keeps a change before it says that its outcome is unknown."""
PAUSE_SECONDS = 0.02
"""Between two attempts."""
AGAIN_CODES = frozenset(
    {
        "busy",
        "deadline_exceeded",
        "disk_full",
        "no_quorum",
        "not_leader",
        "shutting_down",
        "too_stale",
        "unknown_outcome",
    }
)
REPEATED_SHARE = 0.05
"""How many confirmed changes are asked for once more, elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One registration that somebody wants."""

    key: str
    agent_id: str
    value: str

    def request(self) -> bytes:
        """Return it as a request."""
        document = {
            "agent_id": self.agent_id,
            "replace": True,
            "metadata": {"tags": {"value": self.value}},
            "capabilities": [
                {"name": "load.write", "protocol": "rest", "endpoint": "http://127.0.0.1:9/w"}
            ],
        }
        return request_bytes("POST", "/register", document, {"Idempotency-Key": self.key})


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A change that a node confirmed. Times are seconds on this process's clock."""

    change: Change
    index: int
    incarnation: int
    asked_at: float
    confirmed_at: float


@dataclass(slots=True, kw_only=True)
class History:
    """What all writers were told."""

    confirmed: list[Confirmed] = field(default_factory=list)
    open: dict[str, Change] = field(default_factory=dict)
    """By key: asked for, and neither confirmed nor refused."""
    refused: list[str] = field(default_factory=list)
    """Changes refused for good, with the reason: there should be none."""
    contradicted: list[str] = field(default_factory=list)
    """Repeats that were told something else than the first time."""
    attempts_count: int = 0
    repeats_count: int = 0


class Writer:
    """One client.

    Args:
        name: Part of its keys; unique in a run.
        places: The nodes.
        history: Where everything is remembered.
        draw: Which node is asked next.
    """

    def __init__(
        self, name: str, places: Sequence[Place], history: History, draw: random.Random
    ) -> None:
        self.name = name
        self._connections = [Connection(place) for place in places]
        self._history = history
        self._draw = draw
        self._at = draw.randrange(len(places))
        self._count = 0

    def next_change(self, agents: Sequence[str]) -> Change:
        """Return a change of one of these agents, unlike every other change."""
        self._count += 1
        name = f"{self.name}-{self._count}"
        return Change(key=name, agent_id=self._draw.choice(agents), value=name)

    async def run(self, agents: Sequence[str], stop: trio.Event, *, until: float) -> None:
        """Change agents one after the other until told to stop; end what was begun.

        Args:
            agents: Ids to register.
            stop: Set when no new change is to be begun.
            until: When to give up what isn't confirmed.
        """
        try:
            while not stop.is_set():
                change = self.next_change(agents)
                confirmed = await self.insist(change, until=until)
                if confirmed is None:
                    return
                if self._draw.random() < REPEATED_SHARE:
                    await self._repeat(confirmed, until=until)
        finally:
            self.close()

    async def insist(self, change: Change, *, until: float) -> Confirmed | None:
        """Ask for a change until it is confirmed; None when it was refused, or is left open."""
        history = self._history
        history.open[change.key] = change
        asked_at = trio.current_time()
        said = await self._ask_until(change, until=until)
        if said is None:
            return None
        del history.open[change.key]
        confirmed = Confirmed(
            change=change,
            index=said["index"],
            incarnation=said["incarnation"],
            asked_at=asked_at,
            confirmed_at=trio.current_time(),
        )
        history.confirmed.append(confirmed)
        return confirmed

    async def _repeat(self, confirmed: Confirmed, *, until: float) -> None:
        """Ask for a confirmed change again: the answer must be the same."""
        self._at = self._draw.randrange(len(self._connections))
        said = await self._ask_until(confirmed.change, until=until)
        self._history.repeats_count += 1
        if said is not None:
            told = (said["index"], said["incarnation"])
            if told != (confirmed.index, confirmed.incarnation):
                first = f"index {confirmed.index}, incarnation {confirmed.incarnation}"
                then = f"index {told[0]}, incarnation {told[1]}"
                key = confirmed.change.key
                self._history.contradicted.append(f"{key}: first {first}, then {then}")

    async def _ask_until(self, change: Change, *, until: float) -> dict[str, Any] | None:
        """Return the confirmation of a change, None when there is none in time."""
        request = change.request()
        while trio.current_time() < until:
            connection = self._connections[self._at]
            self._history.attempts_count += 1
            try:
                with trio.fail_at(min(until, trio.current_time() + ATTEMPT_SECONDS)):
                    answer = await connection.ask(request)
                said: dict[str, Any] = answer.document()
            except (Lost, trio.TooSlowError):
                said = {"code": "no_quorum"}
            if "incarnation" in said:
                return said
            if said.get("code") not in AGAIN_CODES:
                self._history.refused.append(f"{change.key}: {said}")
                return None
            self._at = (self._at + 1) % len(self._connections)
            await trio.sleep(PAUSE_SECONDS * (0.5 + self._draw.random()))
        return None

    def close(self) -> None:
        """Let go of the connections."""
        for connection in self._connections:
            connection.close()
