"""When watchers have news."""

from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from reachnode.errors import Busy, ShuttingDown
from reachnode.model.liveness import Heartbeat, InstanceState
from reachnode.registry.commands import Register
from reachnode.serve.herald import MERGE_SECONDS, Herald, Place
from tests.fakes import SeededSources
from tests.registry.test_agents import parser
from tests.serve.local_replica import LocalReplica, front_of, sights_of
from tests.serve.local_sights import LocalSights


async def herald_of(replica: LocalReplica, *agent_ids: str) -> tuple[Herald, LocalSights]:
    """Return a herald at whose node instances are registered, and what it sees."""
    front = front_of(replica)
    for agent_id in agent_ids:
        await replica.propose(Register(instance=parser(agent_id)), deadline=0)
    return front.herald, sights_of(front)


async def test_what_happens_within_50_ms_rings_once(autojump_clock: MockClock) -> None:
    """However much it is; and nothing rings while nothing happens."""
    replica = LocalReplica()
    herald, sights = await herald_of(replica, "a1")
    rings = []

    async def listen() -> None:
        while True:
            bell = herald.bell
            await bell.wait()
            rings.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        await nursery.start(herald.run)
        with herald.attended():
            nursery.start_soon(listen)
            await trio.sleep(10)
            rings.clear()
            sights.heartbeat("a1", Heartbeat())
            for at in range(100):
                await replica.propose(Register(instance=parser(f"b{at}")), deadline=0)
            await trio.sleep(10)
        assert len(rings) == 1
        assert rings[0] <= 10 + 2 * MERGE_SECONDS
        nursery.cancel_scope.cancel()
    _ = autojump_clock


async def test_nobody_looks_while_nobody_watches(autojump_clock: MockClock) -> None:
    """A node without watchers isn't woken for them; the first one wakes it."""
    herald, sights = await herald_of(LocalReplica(), "a1")
    async with trio.open_nursery() as nursery:
        await nursery.start(herald.run)
        sights.heartbeat("a1", Heartbeat())
        await trio.sleep(10)
        assert sights.stirred() == {"a1": "pending"}
        sights.heartbeat("a1", Heartbeat(state="updating"))
        with herald.attended():
            await trio.sleep(1)
            sights.outlook.sweep(now=10_000.0)
            sights.outlook.sweep(now=20_000.0)
            await trio.sleep(1)
            assert sights.stirred() == {}
        nursery.cancel_scope.cancel()
    _ = autojump_clock


async def test_news_are_the_difference_to_a_place() -> None:
    """What the log changed, and what was seen to change, with what was before."""
    replica = LocalReplica()
    herald, sights = await herald_of(replica, "a1")
    place = herald.here()
    assert place == Place(index=1, number=0)
    sights.heartbeat("a1", Heartbeat())
    await replica.propose(Register(instance=parser("a2")), deadline=0)
    herald.look()
    news = herald.since(place)
    assert news is not None
    assert (dict(news.changed), dict(news.stirred)) == ({"a2": None}, {"a1": "pending"})
    assert news.place == Place(index=2, number=1)
    assert news.state is replica.state
    again = herald.since(news.place)
    assert again is not None
    assert (again.changed, again.stirred) == ({}, {})


async def test_what_was_seen_since_an_index_is_news_again() -> None:
    """Whoever comes back with an index may have missed it."""
    replica = LocalReplica()
    herald, sights = await herald_of(replica, "a1", "a2")
    sights.heartbeat("a1", Heartbeat())
    herald.look()
    await replica.propose(Register(instance=parser("a3")), deadline=0)
    sights.heartbeat("a2", Heartbeat())
    herald.look()
    stirred = {}
    for index in (1, 2, 3, 4):
        news = herald.since(herald.back_at(index))
        assert news is not None
        stirred[index] = sorted(news.stirred)
    assert stirred == {1: ["a1", "a2"], 2: ["a1", "a2"], 3: ["a2"], 4: []}


class RestlessSights(LocalSights):
    """Sights in which the state of some instance changes all the time."""

    def stirred(self) -> Mapping[str, InstanceState]:
        return {"a1": "healthy"}


async def test_what_was_seen_is_not_remembered_for_ever() -> None:
    """Then whoever comes back starts over, unless the log has moved on since."""
    replica = LocalReplica()
    sights = RestlessSights(replica.state, 0, replica.arrivals, SeededSources())
    herald = Herald(replica, sights, seen_max=4)
    for index in range(1, 7):
        await replica.propose(Register(instance=parser("a1")), deadline=0)
        herald.look()
        assert herald.since(herald.back_at(index)) is not None
    for _ in range(10):
        herald.look()
    assert [herald.since(herald.back_at(index)) for index in range(1, 7)] == [None] * 6
    await replica.propose(Register(instance=parser("a1")), deadline=0)
    assert herald.since(herald.back_at(7)) is not None


async def test_after_a_snapshot_nobody_goes_on() -> None:
    """Anything may have changed."""
    replica = LocalReplica()
    herald, _ = await herald_of(replica, "a1")
    place, bell = herald.here(), herald.bell
    replica.install(LocalReplica().state, 50)
    herald.look()
    assert herald.since(place) is None
    assert bell.is_set()


async def test_watchers_are_bounded() -> None:
    """One more is refused and counted, until one leaves."""
    herald, _ = await herald_of(LocalReplica())
    herald.watchers_max = 1
    herald.refuse_more()
    with herald.attended(), pytest.raises(Busy):
        herald.refuse_more()
    herald.refuse_more()
    assert herald.counters["refused"] == 1


async def test_when_it_is_over_everybody_is_let_go() -> None:
    """Nobody is taken any more, and it stops looking."""
    herald, _ = await herald_of(LocalReplica())
    async with trio.open_nursery() as nursery:
        await nursery.start(herald.run)
        bell = herald.bell
        herald.end()
        await bell.wait()
    with pytest.raises(ShuttingDown):
        herald.refuse_more()
