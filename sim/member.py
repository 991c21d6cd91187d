"""One simulated member: the real core on a pretend disk, with a disk worker that takes time."""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from reachnode.peers.raft.core import Core
from reachnode.peers.raft.disk import Condition, Disk
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.loading import load
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import BadMessage
from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.storage import Storage
from reachnode.registry.outcomes import Outcome
from sim.clock import SimSources, Timeline
from sim.disk import CrashNow, FakeFiles
from sim.network import BULK, CONSENSUS, SimNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What the world wants to know. Each gets the member first."""

    applied: Callable[[str, int, Sequence[Outcome]], None]
    role: Callable[[str, str, int], None]
    stopped: Callable[[str, str], None]
    cut: Callable[[str], None]
    notice: Callable[[str, str, Mapping[str, object]], None]
    rare: Callable[[str], None]
    """Gets the name of a rare branch alone."""
    ended: Callable[[Core], None]
    """Gets a core that has run for the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a disk held when its process began: index of the last entry, and the term."""

    end: int = 0
    term: int = 0


class SimMember:
    """A member that can die at any moment and come back with what its disk kept.

    Args:
        sync_seconds: The least and the most a sync takes.
    """

    _network: SimNetwork
    """Given by `join`, before anything happens."""

    def __init__(
        self,
        membership: Membership,
        *,
        settings: RaftSettings,
        timeline: Timeline,
        seed: str,
        sync_seconds: tuple[float, float],
        hooks: Hooks,
    ) -> None:
        self.id = membership.me
        self.membership = membership
        self.settings = settings
        self.files = FakeFiles()
        self.stalled_until = 0.0
        self.paused_until = 0.0
        self.boots = 0
        self.incarnation = ""
        """The id of the disk; empty while it is new."""
        self.loaded = Held()
        self.sends_left: int | None = None
        """When set, so many more messages leave before the process dies."""
        self.core: Core | None = None
        self._timeline = timeline
        self._dice = random.Random(seed)
        self._sync_seconds = sync_seconds
        self._hooks = hooks
        self._disk: Disk | None = None
        self._storage: Storage | None = None
        self._sources: SimSources | None = None
        self._is_syncing = False
        self._is_suspect = False
        """Whether a sync of the journal failed since the disk last took everything."""
        self._wake_scheduled_at = float("inf")
        self._inside = 0
        self._inbox: deque[tuple[str, bytes]] = deque()

    def join(self, network: SimNetwork) -> None:
        """Use a network."""
        self._network = network

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.core is not None

    @property
    def sources(self) -> SimSources:
        """The process's clock and dice."""
        assert self._sources is not None
        return self._sources

    # --- life and death

    def start(self) -> None:
        """Start the process on what the disk holds."""
        assert self.core is None
        self.boots += 1
        draw = random.Random(self._dice.getrandbits(64))
        rate = 1.0 + draw.uniform(-0.0005, 0.0005)
        sources = SimSources(self._timeline, draw, offset=draw.uniform(0, 1e4), rate=rate)
        try:
            loaded = load(self.files)
        except Damaged as damage:
            self._hooks.stopped(self.id, str(damage))
            return
        end = loaded.entries[-1][1] if loaded.entries else loaded.base[0]
        self.loaded = Held(end=end, term=loaded.term)
        if loaded.torn_bytes:
            self._hooks.rare("torn_tail_cut")
        storage = Storage(
            self.files,
            generation=loaded.generation,
            journal_bytes=loaded.journal_bytes,
        )
        alone = not self.membership.others
        inline = alone and self.settings.safeguards.lone_voter_syncs_at_once
        disk = Disk(storage.perform if inline else None)
        self._sources, self._storage, self._disk = sources, storage, disk
        self._is_syncing = self._is_suspect = False
        self._wake_scheduled_at = float("inf")
        boot = self.boots
        disk.kick = lambda: self._kick(boot)
        self.core = Core(
            membership=self.membership,
            settings=self.settings,
            sources=sources,
            disk=disk,
            wire=self,
            loaded=loaded,
            notice=self._notice,
        )
        self.incarnation = self.core.standing.identity.incarnation
        self.core.on_applied = lambda index, outcomes: self._hooks.applied(self.id, index, outcomes)
        self.enter(self.core.start)
        if self.core is not None:
            self._network.connect_soon(self.id)

    def kill(self, *, power: bool) -> None:
        """End the process; with `power`, what was not synced may be lost."""
        if self.core is None:
            return
        assert self._disk is not None
        assert self._storage is not None
        if self.core.running is None:
            self._hooks.rare("founding_interrupted")
        if self._is_syncing:
            self._perform_partly()
        self._hooks.ended(self.core)
        self.core = None
        self.sends_left = None
        self._inbox.clear()
        if power:
            self.files.power_loss(self._dice)
        else:
            self.files.kill()
        for other in self.membership.others:
            self._network.break_off(self.id, other, again=False)

    def wipe(self) -> None:
        """Empty the disk of a dead member."""
        assert self.core is None
        self.files.wipe()
        self.incarnation = ""

    def _perform_partly(self) -> None:
        """Let the disk worker get as far as it got when the process died."""
        assert self._disk is not None
        assert self._storage is not None
        writes = self._disk.take(0.0)
        self.files.fail_after(self._dice.randint(0, 2 * len(writes) + 4), part=self._dice.random())
        with suppress(CrashNow):
            self._storage.perform(writes, self._disk.commit_index)

    # --- the core runs

    def enter(self, do: Callable[..., object], *args: object) -> None:
        """Let the core do something, then see when it wants to be woken.

        If what it did returns False, that has not come nearer.
        """
        core = self.core
        if core is None:
            return
        self._inside += 1
        try:
            changed = do(*args) is not False
        except (FailStop, BadMessage) as stop:
            self._inside -= 1
            self._hooks.stopped(self.id, str(stop))
            self.kill(power=False)
            return
        self._inside -= 1
        if self.sends_left is not None and self.sends_left <= 0 and self._inside == 0:
            self._hooks.cut(self.id)
            self.kill(power=True)
            return
        if changed and self.core is core and self._inside == 0:
            self._schedule_wake(core)

    def _schedule_wake(self, core: Core) -> None:
        """Ask to be woken when the core wants it."""
        assert self._sources is not None
        at = self._timeline.now + self._sources.until(core.wake_at()) + 1e-6
        if at < self._wake_scheduled_at - 1e-6:
            self._wake_scheduled_at = at
            self._timeline.after(at - self._timeline.now, self._wake, self.boots, at)

    def _wake(self, boot: int, at: float) -> None:
        """Tick, because it is time."""
        if self.core is None or self.boots != boot or at != self._wake_scheduled_at:
            return
        if self._timeline.now < self.paused_until:
            pause = self.paused_until - self._timeline.now
            self._wake_scheduled_at = self.paused_until
            self._timeline.after(pause, self._wake, boot, self.paused_until)
            return
        self._wake_scheduled_at = float("inf")
        assert self._sources is not None
        if self._sources.until(self.core.wake_at()) > 1e-6 and not self.core.upkeep.is_busy:
            self._schedule_wake(self.core)  # A leader was heard meanwhile.
        else:
            self.enter(self._turn)

    def _turn(self) -> None:
        """Tick and do slow work for a while."""
        assert self.core is not None
        self.core.tick()
        for _ in range(WORK_SLICES):
            if not self.core.work():
                break

    def connected(self, peer: str) -> None:
        """Tell the core of a connection."""
        if self.core is not None:
            self.enter(self.core.connected, peer)

    def disconnected(self, peer: str) -> None:
        """Tell the core of a lost connection."""
        self._inbox = deque(item for item in self._inbox if item[0] != peer)
        if self.core is not None:
            self.enter(self.core.disconnected, peer)

    def deliver(self, peer: str, data: bytes) -> None:
        """Give the core a message; while the process is paused it waits."""
        if self.core is None:
            return
        if self._timeline.now < self.paused_until or self._inbox:
            if not self._inbox:
                pause = self.paused_until - self._timeline.now
                self._timeline.after(pause, self._read_inbox, self.boots)
            self._inbox.append((peer, data))
            return
        self.enter(self.core.received, peer, data)

    def _read_inbox(self, boot: int) -> None:
        """Give the core what waited for the process."""
        if self.boots != boot:
            return
        if self._timeline.now < self.paused_until:
            pause = self.paused_until - self._timeline.now
            self._timeline.after(pause, self._read_inbox, boot)
            return
        while self._inbox and self.core is not None:
            self.enter(self.core.received, *self._inbox.popleft())
        self._inbox.clear()

    # --- the wire

    def consensus(self, peer: str, data: bytes) -> bool:
        """Send on the consensus connection."""
        if self.sends_left is not None and self._is_said_last():
            return True
        return self._network.send(self.id, peer, CONSENSUS, data)

    def bulk(self, peer: str, data: bytes) -> bool:
        """Send on the data connection."""
        if self.sends_left is not None and self._is_said_last():
            return True
        return self._network.send(self.id, peer, BULK, data)

    def drop(self, peer: str) -> None:
        """Break off with a peer."""
        self._timeline.after(0, self._network.break_off, self.id, peer)

    def _is_said_last(self) -> bool:
        """Return whether the process has said its last, being about to be dead."""
        assert self.sends_left is not None
        if self.sends_left <= 0:
            return True
        self.sends_left -= 1
        return False

    # --- the disk worker

    def _kick(self, boot: int) -> None:
        """Begin to sync, if the worker is free."""
        if self._is_syncing or self.boots != boot:
            return
        self._is_syncing = True
        self._timeline.after(0, self._sync_begins, boot)

    def _sync_begins(self, boot: int) -> None:
        """Take what waits and let time pass."""
        if self.core is None or self.boots != boot:
            return
        assert self._disk is not None
        assert self._sources is not None
        count = len(self._disk.take(self._sources.now()))
        low, high = self._sync_seconds
        seconds = low + self._dice.random() * (high - low)
        seconds += max(0.0, self.stalled_until - self._timeline.now)
        self._timeline.after(seconds, self._sync_ends, boot, count)

    def _sync_ends(self, boot: int, count: int) -> None:
        """Perform what was taken, and tell the core."""
        if self.core is None or self.boots != boot:
            return
        assert self._disk is not None
        assert self._storage is not None
        assert self._sources is not None
        writes = self._disk.take(self._sources.now())[:count]
        before = self._disk.condition
        performed = self._storage.perform(writes, self._disk.commit_index)
        self._disk.settle(performed)
        self._tell_of_disk(before, self._disk.condition)
        self._is_suspect = self._is_suspect or performed.is_journal_suspect
        self._is_syncing = False
        if self._disk.condition is not Condition.OK:
            self._is_syncing = True
            wait = self.settings.disk_retry_seconds
            self._timeline.after(wait, self._sync_begins, boot)
        elif not self._disk.is_idle:
            self._kick(boot)
        self.enter(self.core.synced)

    def _tell_of_disk(self, before: Condition, after: Condition) -> None:
        """Count what a disk went through."""
        if before is not after and Condition.FULL in (before, after):
            entered = after is Condition.FULL
            self._hooks.rare("disk_full_entered" if entered else "disk_full_left")
        if self._is_suspect and after is Condition.OK:
            self._hooks.rare("sync_failed_and_rewritten")
            self._is_suspect = False

    def _notice(self, event: str, facts: Mapping[str, object]) -> None:
        """Pass the core's notices on."""
        self._hooks.notice(self.id, event, facts)
        if event == "role":
            role, term = facts["role"], facts["term"]
            assert isinstance(role, str)
            assert isinstance(term, int)
            self._hooks.role(self.id, role, term)


WORK_SLICES = 8
