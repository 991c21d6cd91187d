"""Measuring one contender: how long changes take, and how long it is without a leader."""

import itertools
from collections.abc import Iterator, Sequence

import trio

from sim.live.client import Answer, Connection, Lost, Place
from sim.live.cluster import TooLate
from sim.live.contenders import Contender

AGENTS_COUNT = 40
WARM_SECONDS = 0.3
TRY_SECONDS = 0.025
"""Between two attempts at each survivor after a leader was killed."""
FAILOVER_SECONDS_MAX = 30.0
RECOVER_SECONDS = 60.0

NAMES: Iterator[int] = itertools.count(1)


def new_change(contender: Contender) -> bytes:
    """Return a request for a change that nobody asked for before."""
    number = next(NAMES)
    return contender.change(f"bench-{number}", f"agent-{number % AGENTS_COUNT}")


async def timed_changes(
    contender: Contender, place: Place, *, in_flight: int, seconds: float
) -> list[float]:
    """Return how long each change took, in seconds, with so many clients at a time.

    Each client sends its next change when the last one is confirmed. The first moments warm
    connections up and are not counted.

    Raises:
        TooLate: A change was refused or lost, which must not happen to a healthy cluster.
    """
    begins_at = trio.current_time() + WARM_SECONDS
    ends_at = begins_at + seconds
    took: list[float] = []

    async def client() -> None:
        connection = Connection(place)
        try:
            asked_at = trio.current_time()
            while asked_at < ends_at:
                answer = await connection.ask(new_change(contender))
                now = trio.current_time()
                if not contender.is_confirmed(answer):
                    raise TooLate(f"{contender.name} said {answer.status} {answer.body[:200]!r}")
                if asked_at >= begins_at:
                    took.append(now - asked_at)
                asked_at = now
        finally:
            connection.close()

    async with trio.open_nursery() as nursery:
        for _ in range(in_flight):
            nursery.start_soon(client)
    return took


async def timed_failover(contender: Contender) -> float:
    """Kill the leader; return seconds until the survivors confirm a change asked for since.

    Attempts begin again and again at every survivor, each on its own connection, so that one
    that hangs hides nothing. Then the leader is started again and waited for.

    Raises:
        TooLate: Nothing was confirmed, or the cluster did not recover.
    """
    leader = await contender.agreed(seconds=RECOVER_SECONDS)
    survivors = [node.place for node in contender.nodes if node is not leader]
    killed_at = trio.current_time()
    leader.process.kill()
    took = await first_confirmed(contender, survivors) - killed_at
    leader.process.start()
    if leader.process.says_ready:
        await leader.process.first_line()
    await contender.agreed(seconds=RECOVER_SECONDS)
    return took


async def first_confirmed(contender: Contender, places: Sequence[Place]) -> float:
    """Return when one of these members first confirmed a change asked for now or later.

    Raises:
        TooLate: None did.
    """
    found: list[float] = []

    async def attempt(place: Place, scope: trio.CancelScope) -> None:
        connection = Connection(place)
        try:
            answer: Answer = await connection.ask(new_change(contender))
            if contender.is_confirmed(answer):
                found.append(trio.current_time())
                scope.cancel()
        except Lost:
            return
        finally:
            connection.close()

    with trio.move_on_after(FAILOVER_SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            while True:
                for place in places:
                    nursery.start_soon(attempt, place, nursery.cancel_scope)
                await trio.sleep(TRY_SECONDS)
    if not found:
        raise TooLate(f"{contender.name} confirmed nothing for {FAILOVER_SECONDS_MAX:g} s")
    return found[0]
