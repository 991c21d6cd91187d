"""Who is alive: the loops around an outlook."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from reachnode.errors import UnknownAgent
from reachnode.liveness.outlook import Outlook
from reachnode.model.address import Address
from reachnode.model.agents import Health
from reachnode.model.liveness import Heartbeat
from reachnode.node.lookout import Lookout
from reachnode.peers.hello import Lane
from reachnode.peers.switchboard import Switchboard
from reachnode.registry.commands import Deregister, MarkDown, MarkUp, Register
from reachnode.registry.outcomes import Refused
from tests.fakes import MemoryNetwork, SeededSources
from tests.liveness.crowds import instance, registered
from tests.serve.local_replica import LocalReplica

PLACE = Address("10.0.0.7", 9)
"""Where the instances of these tests listen."""


class TrioSources(SeededSources):
    """Sources on trio's clock."""

    def now(self) -> float:
        """Return trio's time."""
        return trio.current_time()


class Post:
    """A lookout over a replica in memory; messages between two posts are carried at once."""

    def __init__(self, name: str, replica: LocalReplica) -> None:
        self.name = name
        self.replica = replica
        self.network = MemoryNetwork()
        self.switchboard = Switchboard()
        self.peers: dict[str, Post] = {}
        self.lookout = Lookout(
            me=name,
            replica=replica,
            switchboard=self.switchboard,
            network=self.network,
            sources=TrioSources(),
        )
        self.switchboard.sender = self

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Carry a message."""
        self.peers[peer].switchboard.message(self.name, lane, data)
        return True

    def disconnect(self, _peer: str) -> None:
        """Nothing here breaks a link."""
        raise AssertionError

    def meet(self, other: "Post") -> None:
        """Connect two posts."""
        for one, two in ((self, other), (other, self)):
            one.peers[two.name] = two
            one.switchboard.up(two.name, Lane.CONSENSUS)

    def state_of(self, agent_id: str) -> str:
        """Return the state of an instance as this post sees it."""
        return self.lookout.of(self.replica.state.agents[agent_id]).state

    def standing_of(self, agent_id: str) -> str:
        """Return what the log says of an instance."""
        return self.replica.state.agents[agent_id].standing

    async def register(self, agent_id: str) -> None:
        """Register an instance."""
        await self.replica.propose(Register(instance=instance(agent_id)), deadline=0)

    def marks(self) -> list[str]:
        """Return what this post proposed to mark."""
        kinds = (MarkDown, MarkUp)
        return [type(one[0]).__name__ for one in self.replica.proposed if isinstance(one[0], kinds)]


@asynccontextmanager
async def running(*posts: Post) -> AsyncIterator[None]:
    """Let lookouts run."""
    async with trio.open_nursery() as nursery:
        for post in posts:
            await nursery.start(post.lookout.run)
        yield
        nursery.cancel_scope.cancel()


async def test_an_instance_that_answers_probes_is_healthy(autojump_clock: MockClock) -> None:
    """Probed at once when it registers, without a heartbeat."""
    post = Post("n1", LocalReplica())
    await post.network.listen(PLACE)
    async with running(post):
        await post.register("a1")
        assert post.state_of("a1") == "pending"
        await trio.sleep(1)
        assert post.state_of("a1") == "healthy"
    _ = autojump_clock


async def test_who_neither_beats_nor_answers_goes_down_and_comes_back(
    autojump_clock: MockClock,
) -> None:
    """A lone node proposes it after its probes failed, and takes it back with a good one."""
    post = Post("n1", LocalReplica())
    async with running(post):
        await post.register("a1")
        await trio.sleep(120)
        assert post.standing_of("a1") == "down"
        await post.network.listen(PLACE)
        await trio.sleep(30)
        assert post.standing_of("a1") == ""
    assert post.marks() == ["MarkDown", "MarkUp"]
    _ = autojump_clock


async def test_a_heartbeat_is_enough_for_the_other_node(autojump_clock: MockClock) -> None:
    """What one node hears the other knows within a second."""
    one = Post("n1", LocalReplica(state=registered("a1")))
    two = Post("n2", LocalReplica(state=registered("a1")))
    one.meet(two)
    async with running(one, two):
        one.lookout.heartbeat("a1", Heartbeat(load=0.5))
        await trio.sleep(1)
        assert two.state_of("a1") == "healthy"
    _ = autojump_clock


async def test_a_second_node_is_asked_before_anybody_is_down(autojump_clock: MockClock) -> None:
    """While the other node reaches the instance it stays, unreachable from the prober alone."""
    one = Post("n1", LocalReplica(state=registered("a1")))
    prober = Post("n2", LocalReplica(state=registered("a1")))
    one.meet(prober)
    await one.network.listen(PLACE)
    async with running(one, prober):
        await trio.sleep(300)
        seen = one.lookout.of(one.replica.state.agents["a1"])
    assert one.marks() + prober.marks() == []
    assert prober.lookout.gossip.counters["opinions_asked"] > 0
    assert seen.state != "down"
    assert seen.unreachable_from == ("n2",)
    _ = autojump_clock


async def test_both_failing_it_goes_down(autojump_clock: MockClock) -> None:
    """The prober proposes it, once the other has confirmed."""
    one = Post("n1", LocalReplica(state=registered("a1")))
    two = Post("n2", LocalReplica(state=registered("a1")))
    one.meet(two)
    async with running(one, two):
        await trio.sleep(120)
    assert "MarkDown" in one.marks() + two.marks()
    assert (
        one.lookout.gossip.counters["opinions_asked"]
        + (two.lookout.gossip.counters["opinions_asked"])
    )
    _ = autojump_clock


async def test_what_is_refused_is_proposed_again(autojump_clock: MockClock) -> None:
    """Without a quorum nobody is marked; with one, they are."""
    post = Post("n1", LocalReplica())
    async with running(post):
        await post.register("a1")
        post.replica.answers = Refused("no_quorum", "nobody leads")
        await trio.sleep(120)
        assert len(post.marks()) > 1
        assert post.standing_of("a1") == ""
        post.replica.answers = None
        await trio.sleep(60)
        assert post.standing_of("a1") == "down"
    _ = autojump_clock


async def test_changes_are_noted_for_watchers(autojump_clock: MockClock) -> None:
    """Entry by entry; a snapshot forgets what was, since anything may have changed."""
    post = Post("n1", LocalReplica())
    await post.register("a1")
    await post.register("a2")
    await post.replica.propose(Deregister(agent_id="a1"), deadline=0)
    noted = post.lookout.changes.since(1)
    assert noted is not None
    assert sorted(noted) == ["a1", "a2"]
    post.replica.install(registered("b1"), 50)
    assert post.lookout.changes.since(3) is None
    assert post.lookout.changes.since(50) == {}
    post.lookout.heartbeat("b1", Heartbeat())
    with pytest.raises(UnknownAgent):
        post.lookout.heartbeat("a2", Heartbeat())
    _ = autojump_clock


async def test_what_was_loaded_is_known_without_an_entry(autojump_clock: MockClock) -> None:
    """A node that starts from its disk, cut off, knows its instances all the same."""
    post = Post("n1", LocalReplica())
    await post.network.listen(PLACE)
    post.replica.state, post.replica.applied_index = registered("a1"), 7
    async with running(post):
        await trio.sleep(2)
        assert post.state_of("a1") == "healthy"
        assert post.lookout.changes.floor == 7
    _ = autojump_clock


async def test_questions_of_peers_are_bounded(autojump_clock: MockClock) -> None:
    """However many are asked, few wait, and all that wait are answered."""
    one = Post("n1", LocalReplica(state=registered("a1")))
    two = Post("n2", LocalReplica(state=registered("a1")))
    one.meet(two)
    incarnation = two.replica.state.agents["a1"].instance.incarnation
    for _ in range(1000):
        one.lookout.gossip.ask("n2", "a1", incarnation)
    async with running(two):
        await trio.sleep(5)
    outlook: Outlook = two.lookout.outlook
    assert outlook.live == frozenset({"n2"})
    _ = autojump_clock


@pytest.mark.parametrize("is_listening", [True, False])
async def test_who_answers_a_probe_is_there(autojump_clock: MockClock, is_listening: bool) -> None:
    """Probed in this moment; a heartbeat alone is no proof where it can be probed."""
    post = Post("n1", LocalReplica(state=registered("a1")))
    if is_listening:
        await post.network.listen(PLACE)
    post.lookout.heartbeat("a1", Heartbeat())
    record = post.replica.state.agents["a1"]
    assert await post.lookout.is_there(record) is is_listening
    _ = autojump_clock


async def test_who_cannot_be_probed_is_there_while_it_beats(autojump_clock: MockClock) -> None:
    """There is no other sign of it."""
    quiet = instance("a1", health=Health(type="none"))
    post = Post("n1", LocalReplica(state=registered(quiet)))
    record = post.replica.state.agents["a1"]
    assert not await post.lookout.is_there(record)
    post.lookout.heartbeat("a1", Heartbeat())
    assert await post.lookout.is_there(record)
    _ = autojump_clock


async def test_who_was_never_reached_from_here_is_no_case_for_this_node(
    autojump_clock: MockClock,
) -> None:
    """It beats, and this node's way to it is cut: that says nothing of the instance."""
    post = Post("n1", LocalReplica(state=registered("a1")))
    record = post.replica.state.agents["a1"]
    async with running(post):
        for _ in range(20):
            post.lookout.heartbeat("a1", Heartbeat())
            await trio.sleep(3)
        assert post.lookout.of(record).unreachable_from == ("n1",)
        assert await post.lookout.is_there(record)
    assert post.lookout.counts == {"healthy": 1}
    assert post.lookout.stirred() == {"a1": "pending"}
    assert (post.lookout.addresses, post.lookout.counters["opinions_asked"]) == ({}, 0)
    _ = autojump_clock
