"""What this node heard as a home: when each instance beat last, and which fell silent.

Silence makes an instance suspect, by this node's monotonic clock alone, and never takes it
away. Whoever was deaf itself accuses nobody: a node that has just started, or was paused
between two sweeps, first listens for a whole lease.

    heard ──> held ──silent for the lease──> suspect ──heard──> held
                └──────── it beats to another node ──> released
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reachnode.errors import Superseded, UnknownAgent
from reachnode.liveness.agenda import Agenda
from reachnode.model.agents import HeartbeatWish
from reachnode.model.liveness import Heard, Heartbeat, clamped_count, clamped_load, risen
from reachnode.registry.state import State

CROWD = 1_000
"""Up to so many instances in the cluster beat at the interval that was set."""
INTERVAL_MS_MAX = 10_000
"""Beyond, intervals are stretched in proportion, up to here."""
WISH_MS_MIN, WISH_MS_MAX = 1_000, 30_000
"""The intervals an instance may wish for; the lower end is stretched like all others."""
STEP_MS = 100
LEASE_MS_MAX = 300_000
"""The longest silence an instance may wish to be allowed."""
BEATS_PER_LEASE = 3
PAUSE_SECONDS = 3.0
"""A node that didn't sweep for so long was paused, or is too busy to be a judge of others."""
POPS_MAX = 500
"""How many leases one sweep looks at, so that its turn stays short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What an instance said when it beat last."""

    incarnation: int
    beat: int
    heard_at: float
    seconds: float
    """How long it may be silent from `heard_at` on."""
    load: float | None
    in_flight: int | None
    self_check: bool | None
    counters: tuple[tuple[str, int], ...]
    is_suspect: bool = False


def granted_ms(state: State, wish: HeartbeatWish | None) -> int:
    """Return the interval at which an instance is to beat, in whole tenths of a second.

    It grows with the number of instances in the cluster, so that heartbeats never flood it.
    """
    common = state.settings.registry.heartbeat_interval_ms
    count = max(len(state.agents), CROWD)
    most = max(common, INTERVAL_MS_MAX)
    if wish is None or wish.interval_ms is None:
        return _in_steps(min(common * count / CROWD, most))
    least = min(min(common, WISH_MS_MIN) * count / CROWD, most)
    return _in_steps(min(max(wish.interval_ms, least), max(most, WISH_MS_MAX)))


def lease_ms(state: State, wish: HeartbeatWish | None) -> int:
    """Return how long an instance may be silent: a wish lengthens it, and never shortens it."""
    least = max(state.settings.registry.suspect_after_ms, BEATS_PER_LEASE * granted_ms(state, wish))
    if wish is None or wish.ttl_ms is None:
        return least
    return max(least, min(wish.ttl_ms, LEASE_MS_MAX))


class Leases:
    """The leases that this node holds.

    Args:
        listening_since: When this node began to take heartbeats.
    """

    def __init__(self, *, listening_since: float) -> None:
        self._listening_since = listening_since
        self._swept_at = listening_since
        self._leases: dict[str, Lease] = {}
        self._ends = Agenda()
        self._suspects_count = 0

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[str]:
        """Yield who beats here."""
        return iter(self._leases)

    @property
    def suspects_count(self) -> int:
        """How many of the leases have run out."""
        return self._suspects_count

    def get(self, agent_id: str) -> Lease | None:
        """Return the lease of an instance, None when it doesn't beat here."""
        return self._leases.get(agent_id)

    def heard(
        self, state: State, agent_id: str, heartbeat: Heartbeat, *, now: float, beat_known: int = 0
    ) -> Heard:
        """Take a heartbeat and return what the instance is to be told.

        Args:
            state: What is registered.
            agent_id: Who beats.
            heartbeat: What it says.
            now: This node's monotonic clock.
            beat_known: The largest beat other nodes told of this incarnation.

        Raises:
            UnknownAgent: It isn't registered, and should register again.
            Superseded: Its id was taken over by a later registration.
        """
        record = state.agents.get(agent_id)
        if record is None:
            raise UnknownAgent(f"{agent_id} isn't registered: register again")
        current = record.instance.incarnation
        # A later one than is known here was registered where the log is ahead of ours.
        incarnation = current if heartbeat.incarnation is None else heartbeat.incarnation
        if incarnation < current:
            raise Superseded(
                f"{agent_id} was registered again, at incarnation {current}",
                details={"incarnation": current},
            )
        wish = record.instance.heartbeat
        silence_ms = lease_ms(state, wish)
        old = self._leases.get(agent_id)
        same = old if old and old.incarnation == incarnation else None
        self._put(
            agent_id,
            Lease(
                incarnation=incarnation,
                beat=max(same.beat if same else 0, beat_known) + 1,
                heard_at=now,
                seconds=silence_ms / 1000,
                load=clamped_load(heartbeat.load),
                in_flight=clamped_count(heartbeat.in_flight),
                self_check=heartbeat.self_check,
                counters=risen(same.counters if same else (), heartbeat.counters),
            ),
        )
        return Heard(
            interval_ms=granted_ms(state, wish),
            lease_ms=silence_ms,
            is_new=same is None,
            is_recovered=same is not None and same.is_suspect,
        )

    def overdue(self, now: float) -> tuple[str, ...]:
        """Return who has become suspect since the last sweep, in the order of their leases' ends.

        A sweep looks at no more than `POPS_MAX` leases; the next goes on.
        """
        if now - self._swept_at > PAUSE_SECONDS:
            self._listening_since = now
        self._swept_at = now
        found = []
        for _ in range(POPS_MAX):
            agent_id = self._ends.pop(now)
            if agent_id is None:
                break
            lease = self._leases[agent_id]
            ends_at = max(lease.heard_at, self._listening_since) + lease.seconds
            if ends_at > now:
                self._ends.put(agent_id, ends_at)
                continue
            self._leases[agent_id] = replace(lease, is_suspect=True)
            self._suspects_count += 1
            found.append(agent_id)
        return tuple(found)

    def release(self, agent_id: str, *, incarnation: int, beat: int) -> bool:
        """Give a lease up when another node heard a later beat; return whether there was one.

        Args:
            agent_id: Whom the other node heard.
            incarnation: Which incarnation it heard; an older one releases nothing.
            beat: The beat it gave; 0 when it holds no lease.
        """
        lease = self._leases.get(agent_id)
        if lease is None or beat == 0:
            return False
        if (incarnation, beat) <= (lease.incarnation, lease.beat):
            return False
        return self.forget(agent_id)

    def forget(self, agent_id: str) -> bool:
        """Drop a lease; return whether there was one."""
        lease = self._leases.pop(agent_id, None)
        if lease is None:
            return False
        self._suspects_count -= lease.is_suspect
        self._ends.drop(agent_id)
        return True

    def _put(self, agent_id: str, lease: Lease) -> None:
        old = self._leases.get(agent_id)
        if old is not None:
            self._suspects_count -= old.is_suspect
        self._leases[agent_id] = lease
        self._ends.put(agent_id, lease.heard_at + lease.seconds)


def _in_steps(milliseconds: float) -> int:
    """Return an interval rounded up to a step, so that a few newcomers don't change it."""
    return -int(-milliseconds // STEP_MS) * STEP_MS
