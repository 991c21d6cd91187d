"""Cores for tests: real ones on pretend disks, with links and a clock moved by hand.

Nothing happens by itself: `settle` lets messages and disks go on until all is quiet,
`run` lets time pass.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reachnode.peers.raft.core import Core, Running
from reachnode.peers.raft.disk import Disk
from reachnode.peers.raft.loading import load
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import AnyMessage, decode, encode
from reachnode.peers.raft.proposal import Fate
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.storage import Storage
from reachnode.registry.commands import Advance, Command
from reachnode.registry.outcomes import Outcome
from reachnode.registry.state import State
from sim.disk import FakeFiles
from tests.peers.raft.clocks import Clock, ManualSources

MEMBERS = ("n1", "n2", "n3")
SETTINGS = RaftSettings(snapshot_entries=20, keep_entries=5, digest_every=10)
STEP_SECONDS = 0.02
ROUNDS_MAX = 10_000


@dataclass(slots=True)
class Told:
    """What was told of one change or read."""

    fates: list[Fate] = field(default_factory=list)

    @property
    def fate(self) -> Fate:
        """The only one."""
        (fate,) = self.fates
        return fate


class CoreNode:
    """One member: its disk, its process, and notes."""

    def __init__(self, cores: "Cores", me: str) -> None:
        self.me = me
        self.files = FakeFiles()
        self.is_stalled = False
        """Whether the disk worker does nothing."""
        self.notices: list[tuple[str, Mapping[str, object]]] = []
        self.applied: list[tuple[int, tuple[Outcome, ...]]] = []
        self.said: list[tuple[str, AnyMessage]] = []
        self.dropped: list[str] = []
        self.has_data_lane = True
        self.is_alive = False
        self.wakes_at = 0.0
        self._cores = cores
        self._boots_count = 0
        self._requests_count = 0

    def start(self) -> None:
        """Start the process on what the disk holds."""
        self._boots_count += 1
        self.sources = ManualSources(f"{self.me}-{self._boots_count}", self._cores.clock)
        loaded = load(self.files)
        self.storage = Storage(
            self.files, generation=loaded.generation, journal_bytes=loaded.journal_bytes
        )
        membership = self._cores.membership(self.me)
        self.disk = Disk(None if membership.others else self.storage.perform)
        self.core = Core(
            membership=membership,
            settings=self._cores.settings,
            sources=self.sources,
            disk=self.disk,
            wire=self,
            loaded=loaded,
            notice=lambda event, facts: self.notices.append((event, facts)),
        )
        self.core.on_applied = lambda index, outcomes: self.applied.append((index, tuple(outcomes)))
        self.is_alive = True
        self.core.start()

    def work_disk(self) -> bool:
        """Perform what waits; return whether there was something."""
        if self.disk.is_journal_suspect and not self.is_stalled:
            self.core.synced()  # Of a lone voter, whose writes fail inside the call.
        writes = () if self.is_stalled else self.disk.take(self.sources.now())
        if writes:
            self.disk.settle(self.storage.perform(writes, self.disk.commit_index))
            self.core.synced()
        return bool(writes) and self.disk.error is None

    # --- the wire

    def consensus(self, peer: str, data: bytes) -> bool:
        """Send on the consensus connection."""
        return self._send(peer, data)

    def bulk(self, peer: str, data: bytes) -> bool:
        """Send on the data connection."""
        return self.has_data_lane and self._send(peer, data)

    def drop(self, peer: str) -> None:
        """Break off with a peer."""
        self.dropped.append(peer)

    def _send(self, peer: str, data: bytes) -> bool:
        if not self._cores.is_connected(self.me, peer):
            return False
        self.said.append((peer, decode(data)))
        self._cores.links[self.me, peer].append(data)
        return True

    # --- what a test asks

    @property
    def raft(self) -> Running:
        """The parts of a running core."""
        assert self.core.running is not None
        return self.core.running

    @property
    def state(self) -> State:
        """The state as it is applied here."""
        return self.raft.machine.state

    @property
    def is_leader(self) -> bool:
        """Whether it runs and leads."""
        return self.is_alive and self.core.running is not None and self.raft.engine.is_leader

    def propose(
        self, command: Command | None = None, *, name: str = "", seconds: float = 5.0
    ) -> Told:
        """Propose a change, by default a small one."""
        told = Told()
        self._requests_count += 1
        self.core.propose(
            command or Advance(by_ms=1),
            request_id=name or f"{self.me}-{self._requests_count}",
            deadline=self.sources.now() + seconds,
            resolve=told.fates.append,
        )
        return told

    def fence(self, seconds: float = 5.0) -> Told:
        """Ask for a linearizable read."""
        told = Told()
        self.core.fence(deadline=self.sources.now() + seconds, resolve=told.fates.append)
        return told

    def hear(self, peer: str, *messages: AnyMessage) -> None:
        """Let a peer say something, whatever it is."""
        for message in messages:
            self.core.received(peer, encode(message))

    def said_since(self, count: int, to: str | None = None) -> list[AnyMessage]:
        """Return what it said after its first so many messages."""
        return [message for peer, message in self.said[count:] if to in (None, peer)]

    def events(self) -> list[str]:
        """Return the names of its notices."""
        return [event for event, _ in self.notices]


class Cores:
    """Members that are connected, each with all the others."""

    def __init__(
        self, members: Sequence[str] = MEMBERS, *, settings: RaftSettings = SETTINGS
    ) -> None:
        self.settings = settings
        self.clock = Clock()
        self.links: dict[tuple[str, str], deque[bytes]] = {}
        """Connections, by speaker and listener, with what is under way."""
        self.cut: set[tuple[str, str]] = set()
        """Directions in which everything is stalled."""
        self._peers = tuple(f"{member}=host:{at}" for at, member in enumerate(sorted(members)))
        self.nodes = {member: CoreNode(self, member) for member in members}

    def membership(self, me: str) -> Membership:
        """Return who is who, as a member sees it."""
        return Membership(me=me, peers=self._peers)

    def __getitem__(self, member: str) -> CoreNode:
        return self.nodes[member]

    # --- processes and connections

    def start(self, *members: str) -> None:
        """Start members and connect them with all that are alive."""
        for member in members or tuple(self.nodes):
            self[member].start()
            for other in self._alive():
                if other.me != member:
                    self.connect(member, other.me)
        self.settle()

    def stop(self, member: str) -> None:
        """End a process; its disk stays as it is."""
        for other in tuple(self.nodes):
            self.disconnect(member, other)
        self[member].is_alive = False
        self[member].is_stalled = False
        self[member].files.kill()

    def is_connected(self, one: str, other: str) -> bool:
        """Return whether there is a connection."""
        return (one, other) in self.links

    def connect(self, one: str, other: str) -> None:
        """Connect two members."""
        if not self.is_connected(one, other):
            self.links |= {(one, other): deque(), (other, one): deque()}
            self[one].core.connected(other)
            self[other].core.connected(one)

    def disconnect(self, one: str, other: str) -> None:
        """Break a connection; what was under way is lost."""
        if self.is_connected(one, other):
            del self.links[one, other], self.links[other, one]
            self[one].core.disconnected(other)
            self[other].core.disconnected(one)

    def isolate(self, member: str) -> None:
        """Break all connections of a member."""
        for other in tuple(self.nodes):
            self.disconnect(member, other)

    def rejoin(self, member: str) -> None:
        """Connect a member with all that are alive."""
        for other in self._alive():
            if other.me != member:
                self.connect(member, other.me)

    def _alive(self) -> list[CoreNode]:
        return [node for node in self.nodes.values() if node.is_alive]

    # --- going on

    def settle(self) -> None:
        """Let messages, disks and slow work go on until all is quiet."""
        for _ in range(ROUNDS_MAX):
            if not any([self._deliver(), self._work()]):
                return
        raise AssertionError("it never becomes quiet")

    def _deliver(self) -> bool:
        """Deliver what is under way, one message of each direction."""
        moved = False
        for one, other in sorted(self.links):
            waiting = self.links.get((one, other))
            if waiting and (one, other) not in self.cut:
                moved = True
                self[other].core.received(one, waiting.popleft())
        for node in self._alive():
            while node.dropped:
                self.disconnect(node.me, node.dropped.pop())
        return moved

    def _work(self) -> bool:
        """Let disks and slow work go on by a piece."""
        moved = False
        for node in self._alive():
            moved = node.work_disk() or moved
            while node.core.work():
                moved = True
        return moved

    def run(self, seconds: float) -> None:
        """Let time pass; everybody is woken when it wants to be."""
        end = self.clock.at + seconds
        while self.clock.at < end:
            self.clock.at += STEP_SECONDS
            for node in self._alive():
                if node.wakes_at <= self.clock.at:
                    node.core.tick()
                    node.wakes_at = node.core.wake_at()
                node.wakes_at = min(node.wakes_at, node.core.wake_at())
            self.settle()

    def elect(self, member: str = "n1") -> CoreNode:
        """Let a member lead, by asking whoever leads now to hand over or by waiting."""
        for _ in range(100):
            if self[member].is_leader:
                self.run(0.3)
                return self[member]
            for node in self._alive():
                if node.me != member and node.core.running is not None:
                    if node.is_leader:
                        node.raft.engine.step_down()
                    node.raft.engine.election_at = self.clock.at + 1.0
            self.run(0.1)
        raise AssertionError(f"{member} does not come to lead")

    def leader(self) -> CoreNode:
        """Return the only leader."""
        (leader,) = [node for node in self._alive() if node.is_leader]
        return leader

    def agree(self, members: Iterable[str] = ()) -> bool:
        """Return whether members have applied the same."""
        nodes = [self[member] for member in members] or self._alive()
        return len({(node.raft.machine.index, str(node.state)) for node in nodes}) == 1


def three(settings: RaftSettings = SETTINGS, *, leader: str = "n1") -> Cores:
    """Return three members that have founded a cluster, one of them leading."""
    cores = Cores(settings=settings)
    cores.start()
    cores.elect(leader)
    return cores
