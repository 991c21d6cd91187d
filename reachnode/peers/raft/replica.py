"""A member in trio: the core's three ports, carried out.

Four tasks: the mesh (peers come and go, messages arrive), the disk worker (writes in a
thread, one batch at a time), the clock (ticks when the core wants to be woken), and slow
work in slices between everybody else's turns. What the core decides happens inside calls
that never wait, so no two of them interleave.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import trio

from reachnode.model.address import Address
from reachnode.model.membership import ReplicaStatus, Syncs, Unknown
from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import Lane
from reachnode.peers.link import LinkSettings
from reachnode.peers.mesh import Mesh
from reachnode.peers.raft.arrivals import Arrivals
from reachnode.peers.raft.core import Core
from reachnode.peers.raft.disk import Condition, Disk, Performed, Write
from reachnode.peers.raft.failstop import FailStop, failstop
from reachnode.peers.raft.loading import Loaded, load
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import BadMessage
from reachnode.peers.raft.proposal import Fate
from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.report import describe
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.storage import Storage
from reachnode.peers.secrets import ClusterSecrets
from reachnode.peers.switchboard import Channel, Switchboard
from reachnode.registry.commands import Command, ReplaceMember
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import State, genesis
from reachnode.world.files import Files
from reachnode.world.network import Network
from reachnode.world.sources import Sources

LOG = logging.getLogger(__name__)
GRACE_SECONDS = 1.0
"""How long after its deadline a change is waited for before it is called unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a replica stands on.

    Args:
        members: Peer address of every voter, this one included.
        listen: Where peers dial in.
        files: The data directory, locked.
    """

    me: str
    members: Mapping[str, Address]
    listen: Address
    files: Files
    network: Network
    sources: Sources
    secrets: ClusterSecrets
    raft: RaftSettings
    link: LinkSettings
    switchboard: Switchboard = field(default_factory=Switchboard)
    """Where other services share the mesh; they are attached before the replica runs."""


class Replica:
    """This node's copy of the registry, and the way to change it.

    Deadlines are on the clock of `sources`, in seconds.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        peers = tuple(sorted(f"{member}={at}" for member, at in around.members.items()))
        self._membership = Membership(me=around.me, peers=peers)
        self.switchboard = around.switchboard
        self._port = around.switchboard.attach(Channel.CONSENSUS, self)
        self._core: Core | None = None
        self._mesh: Mesh | None = None
        self._storage: Storage | None = None
        self._disk_kicked = trio.Event()
        self._woken = trio.Event()
        self._sleeps_until = 0.0
        self.arrivals = Arrivals()
        """Where those join who follow what is applied."""
        self._role_changed = trio.Event()
        self._condition_said = Condition.OK
        self._syncs = Syncs()

    # --- what clients ask

    @property
    def state(self) -> State:
        """The state at `applied_index`; a newer one takes its place."""
        if self._core is None or self._core.running is None:
            return genesis("", {})
        return self._core.running.machine.state

    @property
    def applied_index(self) -> int:
        """The log index up to which `state` has everything."""
        if self._core is None or self._core.running is None:
            return 0
        return self._core.running.machine.index

    def status(self) -> ReplicaStatus:
        """Return where this replica stands now."""
        addresses = {member: str(at) for member, at in self._around.members.items()}
        status = describe(self._core, self._membership, addresses)
        return replace(status, syncs=self._syncs)

    def link_counters(self) -> Mapping[str, int]:
        """Return the peer links' counters, by name."""
        return dict(self._mesh.counters) if self._mesh is not None else {}

    async def propose(
        self, command: Command, *, deadline: float, request_id: str | None = None
    ) -> Fate:
        """Return what became of a change; a repeat under the same id counts once."""
        core = self._core
        if core is None:
            return Refused("no_quorum", "this node is still reading its disk")
        fates: list[Fate] = []
        done = trio.Event()

        def resolve(fate: Fate) -> None:
            fates.append(fate)
            done.set()

        core.propose(
            command,
            request_id=request_id or self._around.sources.new_id(),
            deadline=deadline,
            resolve=resolve,
        )
        return await self._fate(fates, done, deadline)

    async def read_fence(self, *, deadline: float) -> int | Refused | Unknown:
        """Return the index at which this node's state is linearizable."""
        core = self._core
        if core is None:
            return Refused("no_quorum", "this node is still reading its disk")
        fates: list[Fate] = []
        done = trio.Event()

        def resolve(fate: Fate) -> None:
            fates.append(fate)
            done.set()

        core.fence(deadline=deadline, resolve=resolve)
        fate = await self._fate(fates, done, deadline)
        return fate.index if isinstance(fate, Applied) else fate

    async def _fate(self, fates: Sequence[Fate], done: trio.Event, deadline: float) -> Fate:
        """Return the fate that a core told, however the core ends."""
        self._look_at_clock()
        with trio.move_on_at(deadline + GRACE_SECONDS):
            await done.wait()
        return fates[0] if fates else Unknown("this node stopped before it was told")

    async def wait_applied(self, index: int, *, deadline: float) -> bool:
        """Return whether the state reached an index by the deadline."""
        if self.applied_index >= index:
            return True
        await self.arrivals.wait(index, deadline=deadline)
        return self.applied_index >= index

    async def replace_member(self, member_id: str, deadline: float) -> Fate:
        """Return what became of admitting the disk a member greets with now."""
        if self._core is None:
            return Refused("no_quorum", "this node is still reading its disk")
        incarnation = self._core.standing.replaceable(member_id)
        if isinstance(incarnation, Refused):
            return incarnation
        follows = self._core.standing.newest_admission()
        command = ReplaceMember(member_id=member_id, incarnation=incarnation, follows=follows)
        return await self.propose(command, deadline=deadline)

    async def transfer_leadership(self) -> bool:
        """Return whether this node led and gave leadership to another."""
        led = self._leads()
        while self._core is not None and self._leads():
            changed = self._role_changed
            self._core.hand_over()
            with trio.move_on_after(HAND_OVER_AGAIN_SECONDS):
                await changed.wait()
        return led

    def _leads(self) -> bool:
        """Return whether this node leads."""
        raft = self._core.running if self._core is not None else None
        return raft is not None and raft.engine.is_leader

    # --- running

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Take part in the cluster until cancelled.

        Started, with the bound peer address, once what the disk held is read.

        Raises:
            FailStop: The disk, or the state, is damaged.
            OSError: The peer address can't be bound, or the disk can't be read.
        """
        loaded = await self._load()
        around = self._around
        self._storage = Storage(
            around.files,
            generation=loaded.generation,
            journal_bytes=loaded.journal_bytes,
        )
        alone = not self._membership.others
        disk = Disk(self._perform_now if alone else None)
        disk.kick = self._kick_disk
        self._core = core = Core(
            membership=self._membership,
            settings=around.raft,
            sources=around.sources,
            disk=disk,
            wire=self,
            loaded=loaded,
            notice=self._notice,
        )
        core.on_applied = self._applied
        self._mesh = Mesh(
            me=around.me,
            peers=around.members,
            listen=around.listen,
            network=around.network,
            sources=around.sources,
            secrets=around.secrets,
            cluster_id=lambda: core.standing.identity.cluster_id,
            boot_id=around.sources.new_id(),
            events=around.switchboard,
            settings=around.link,
        )
        around.switchboard.sender = self._mesh
        core.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._work_disk, core, disk)
            nursery.start_soon(self._keep_time, core)
            task_status.started(await nursery.start(self._mesh.run))

    async def _load(self) -> Loaded:
        """Return what the disk holds; damage stops the node."""
        try:
            loaded = await trio.to_thread.run_sync(load, self._around.files)
        except Damaged as damage:
            word = next((w for part, w in DAMAGE_WORDS if damage.name.startswith(part)), "")
            raise failstop(word or "vote_damaged", str(damage)) from damage
        if loaded.torn_bytes:
            LOG.warning("%d bytes at the end of the journal were torn off", loaded.torn_bytes)
        return loaded

    async def _work_disk(self, core: Core, disk: Disk) -> None:
        """Perform what waits for the disk, one batch at a time."""
        assert self._storage is not None
        one_thread = trio.CapacityLimiter(1)
        while True:
            await self._disk_kicked.wait()
            self._disk_kicked = trio.Event()
            self._say_condition(disk)
            if disk.is_journal_suspect:  # Of a lone voter, whose writes fail inside the call.
                core.synced()
            writes = disk.take(self._around.sources.now())
            if not writes:
                continue
            began_at = self._around.sources.now()
            performed = await trio.to_thread.run_sync(
                self._storage.perform, writes, disk.commit_index, limiter=one_thread
            )
            self._syncs = self._syncs.with_one(self._around.sources.now() - began_at)
            disk.settle(performed)
            self._say_condition(disk)
            core.synced()
            self._look_at_clock()
            if disk.condition is not Condition.OK:
                await trio.sleep(self._around.raft.disk_retry_seconds)
                self._disk_kicked.set()
            elif not disk.is_idle:
                self._disk_kicked.set()

    def _perform_now(self, writes: Sequence[Write], commit_index: int) -> Performed:
        """Perform writes inside the call, for a lone voter."""
        assert self._storage is not None
        began_at = self._around.sources.now()
        performed = self._storage.perform(writes, commit_index)
        self._syncs = self._syncs.with_one(self._around.sources.now() - began_at)
        return performed

    async def _keep_time(self, core: Core) -> None:
        """Tick when the core wants it, and do its slow work in between."""
        while True:
            self._sleeps_until = core.wake_at()
            with trio.move_on_at(self._sleeps_until):
                await self._woken.wait()
            self._woken = trio.Event()
            core.tick()
            while core.work():
                await trio.lowlevel.checkpoint()
                core.tick()

    def _kick_disk(self) -> None:
        """Wake the disk worker."""
        self._disk_kicked.set()

    def _look_at_clock(self) -> None:
        """Wake the clock if the core wants to be woken earlier, or has slow work."""
        core = self._core
        if core is not None and (core.upkeep.is_busy or core.wake_at() < self._sleeps_until):
            self._woken.set()

    def _say_condition(self, disk: Disk) -> None:
        """Log a change in the disk's condition."""
        if disk.condition is self._condition_said:
            return
        self._condition_said = disk.condition
        if disk.condition is Condition.OK:
            LOG.warning("the disk takes writes again")
        else:
            LOG.error("the disk takes no writes: %s", disk.error)

    def _applied(self, _index: int, _outcomes: Sequence[Outcome]) -> None:
        """Tell who waits for an index, or follows."""
        assert self._core is not None
        assert self._core.running is not None
        self.arrivals.arrived(self._core.running.machine)

    def _notice(self, event: str, facts: Mapping[str, object]) -> None:
        """Log what the core has to tell."""
        if event == "role":
            self._role_changed.set()
            self._role_changed = trio.Event()
        said = " ".join(f"{key}={value}" for key, value in facts.items())
        LOG.log(NOTICE_LEVELS.get(event, logging.WARNING), "%s: %s", event, said)

    # --- the mesh's events

    def up(self, peer: str, lane: Lane) -> None:
        """Tell the core of a consensus connection."""
        if lane is Lane.CONSENSUS and self._core is not None:
            self._core.connected(peer)
            self._look_at_clock()

    def down(self, peer: str, lane: Lane) -> None:
        """Tell the core of a lost consensus connection."""
        if lane is Lane.CONSENSUS and self._core is not None:
            self._core.disconnected(peer)
            self._look_at_clock()

    def message(self, peer: str, lane: Lane, data: bytes) -> None:
        """Give the core a message.

        Raises:
            LinkBroken: It makes no sense.
            FailStop: It revealed damage.
        """
        assert self._core is not None
        try:
            self._core.received(peer, data)
        except BadMessage as error:
            raise LinkBroken(f"{peer} on {lane.name.lower()}: {error}") from error
        self._look_at_clock()

    # --- the core's wire

    def consensus(self, peer: str, data: bytes) -> bool:
        """Send on the consensus connection."""
        return self._port.send(peer, Lane.CONSENSUS, data)

    def bulk(self, peer: str, data: bytes) -> bool:
        """Send on the data connection."""
        return self._port.send(peer, Lane.DATA, data)

    def drop(self, peer: str) -> None:
        """Break the connections to a peer."""
        self._port.disconnect(peer)


DAMAGE_WORDS = (
    ("journal", "journal_damaged"),
    ("snapshot", "snapshot_damaged"),
    ("vote", "vote_damaged"),
    ("identity", "vote_damaged"),
)
HAND_OVER_AGAIN_SECONDS = 0.2
NOTICE_LEVELS = {"role": logging.INFO, "cluster founded": logging.INFO}

__all__ = ["FailStop", "Replica", "Surroundings"]
