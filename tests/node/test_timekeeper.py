"""Cluster time, and what falls due by it."""

from dataclasses import replace

import trio
from trio.testing import MockClock

from reachnode.model.membership import ReplicaStatus
from reachnode.node.timekeeper import Timekeeper
from reachnode.registry.commands import Advance, Command, Forget, Mark, MarkDown, Register
from reachnode.registry.outcomes import Refused
from tests.liveness.crowds import instance
from tests.node.test_lookout import TrioSources
from tests.serve.local_replica import ALONE, LocalReplica

FOLLOWER: ReplicaStatus = replace(ALONE, role="follower")


async def with_down(replica: LocalReplica) -> None:
    """Register an instance and mark it down."""
    await replica.propose(Register(instance=instance("a1")), deadline=0)
    incarnation = replica.state.agents["a1"].instance.incarnation
    mark = Mark(agent_id="a1", incarnation=incarnation)
    await replica.propose(MarkDown(marks=(mark,)), deadline=0)
    replica.proposed.clear()


async def kept(replica: LocalReplica, seconds: float) -> list[Command]:
    """Return what a timekeeper proposes in a while."""
    keeper = Timekeeper(replica, TrioSources())
    async with trio.open_nursery() as nursery:
        await nursery.start(keeper.run)
        await trio.sleep(seconds)
        nursery.cancel_scope.cancel()
    return [command for command, _, _ in replica.proposed]


async def test_nothing_is_logged_while_nothing_is_due(autojump_clock: MockClock) -> None:
    """Ten quiet minutes, not one entry."""
    assert await kept(LocalReplica(), 600) == []
    _ = autojump_clock


async def test_time_moves_while_somebody_is_down(autojump_clock: MockClock) -> None:
    """At most once a second, by what the leader's clock measured."""
    replica = LocalReplica()
    await with_down(replica)
    ticks = await kept(replica, 20.5)
    assert all(isinstance(one, Advance) for one in ticks)
    assert len(ticks) == 19
    assert 18_900 <= replica.state.time_ms <= 19_100
    _ = autojump_clock


async def test_who_was_down_too_long_is_forgotten(autojump_clock: MockClock) -> None:
    """After `forget_after_ms` of cluster time; then time stands still again."""
    replica = LocalReplica()
    await with_down(replica)
    after_ms = replica.state.settings.registry.forget_after_ms
    commands = await kept(replica, after_ms / 1000 + 10)
    assert isinstance(commands[-1], Forget)
    assert not replica.state.agents
    assert replica.state.time_ms <= after_ms + 1_000
    _ = autojump_clock


async def test_only_the_leader_keeps_time(autojump_clock: MockClock) -> None:
    """A follower proposes nothing, and a leader that was none measures anew."""
    replica = LocalReplica(now=FOLLOWER)
    await with_down(replica)
    assert await kept(replica, 30) == []
    _ = autojump_clock


async def test_a_refused_tick_is_made_up_for(autojump_clock: MockClock) -> None:
    """By a longer one, up to the largest step."""
    replica = LocalReplica()
    await with_down(replica)
    keeper = Timekeeper(replica, TrioSources())
    await keeper.tick()
    await trio.sleep(1)
    replica.answers = Refused("no_quorum", "nobody leads")
    await keeper.tick()
    replica.answers = None
    await trio.sleep(0.5)
    await keeper.tick()
    assert replica.state.time_ms == 1_500
    await keeper.tick()
    assert replica.state.time_ms == 1_500
    _ = autojump_clock
