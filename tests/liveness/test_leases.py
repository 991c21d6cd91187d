"""What a node heard as a home."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import Superseded, UnknownAgent
from reachnode.liveness.leases import (
    PAUSE_SECONDS,
    POPS_MAX,
    Lease,
    Leases,
    granted_ms,
    lease_ms,
)
from reachnode.model.agents import HeartbeatWish
from reachnode.model.liveness import Heartbeat
from reachnode.model.settings import RegistryRules
from reachnode.registry.commands import Register
from reachnode.registry.state import State
from tests.liveness.clusters import three
from tests.liveness.crowds import crowd, instance, registered, set_to

BEAT = Heartbeat()
ONE = registered("a1")
CROWDS = {count: crowd(count) for count in (1, 1_200, 4_000)}


def held(leases: Leases, agent_id: str) -> Lease:
    """Return a lease that is there."""
    lease = leases.get(agent_id)
    assert lease is not None
    return lease


def swept(leases: Leases, *, since: float, until: float, step: float = 0.5) -> dict[str, float]:
    """Return who became suspect, and when, in sweeps at a regular pace."""
    found = {}
    for at in range(round((until - since) / step) + 1):
        now = since + at * step
        found.update(dict.fromkeys(leases.overdue(now), now))
    return found


@pytest.mark.parametrize(
    ("count", "wish_ms", "granted"),
    [
        (1, None, 3_000),
        (1_200, None, 3_600),
        (4_000, None, 10_000),
        (1, 1_500, 1_500),
        (1, 20, 1_000),
        (1, 3_600_000, 30_000),
        (1_200, 20, 1_200),
        (4_000, 20, 4_000),
        (4_000, 25_000, 25_000),
        (1, 1_501, 1_600),
    ],
)
def test_the_interval_bears_the_crowd(count: int, wish_ms: int | None, granted: int) -> None:
    """3 s, stretched above a thousand up to 10 s; a wish is honored within bounds."""
    wish = HeartbeatWish(interval_ms=wish_ms) if wish_ms else None
    assert granted_ms(CROWDS[count], wish) == granted


def test_the_interval_that_was_set_rules() -> None:
    """The settings may ask for other intervals, shorter or longer than ours."""
    quick = set_to(ONE, registry=RegistryRules(heartbeat_interval_ms=200, suspect_after_ms=500))
    assert granted_ms(quick, None) == 200
    assert granted_ms(quick, HeartbeatWish(interval_ms=100)) == 200
    assert lease_ms(quick, None) == 600
    slow = set_to(ONE, registry=RegistryRules(heartbeat_interval_ms=60_000))
    assert granted_ms(slow, None) == 60_000
    assert granted_ms(slow, HeartbeatWish(interval_ms=90_000)) == 60_000


@pytest.mark.parametrize(
    ("wish", "lease"),
    [
        (None, 10_000),
        (HeartbeatWish(interval_ms=6_000), 18_000),
        (HeartbeatWish(ttl_ms=60_000), 60_000),
        (HeartbeatWish(ttl_ms=1), 10_000),
        (HeartbeatWish(ttl_ms=10**9), 300_000),
    ],
)
def test_a_lease_is_three_beats_at_least(wish: HeartbeatWish | None, lease: int) -> None:
    """Silence is allowed for 10 s or three intervals; an instance may only ask for longer."""
    assert lease_ms(ONE, wish) == lease


def test_a_heartbeat_is_answered() -> None:
    """The instance learns when to beat next; what it said is kept within its range."""
    leases = Leases(listening_since=0.0)
    said = Heartbeat(
        incarnation=1, load=4.0, in_flight=-2, self_check=True, counters=(("calls", 7),)
    )
    heard = leases.heard(ONE, "a1", said, now=5.0, beat_known=8)
    assert (heard.interval_ms, heard.lease_ms) == (3_000, 10_000)
    assert (heard.is_new, heard.is_recovered) == (True, False)
    lease = held(leases, "a1")
    assert (lease.beat, lease.heard_at, lease.load, lease.in_flight) == (9, 5.0, 1.0, 0)
    assert (lease.self_check, lease.counters) == (True, (("calls", 7),))
    again = leases.heard(ONE, "a1", Heartbeat(load=math.nan, counters=(("calls", 3),)), now=8.0)
    assert not again.is_new
    lease = held(leases, "a1")
    assert (lease.beat, lease.load, lease.counters) == (10, None, (("calls", 7),))
    assert list(leases) == ["a1"]


def test_who_isn_t_registered_is_told_so() -> None:
    """A heartbeat makes no instance: it must register."""
    leases = Leases(listening_since=0.0)
    with pytest.raises(UnknownAgent, match="a9 isn't registered"):
        leases.heard(ONE, "a9", BEAT, now=1.0)
    assert len(leases) == 0


def test_who_was_replaced_is_told_so() -> None:
    """A process that lost its id neither renews its successor's lease nor goes unanswered."""
    state = registered("a1", "a1")
    leases = Leases(listening_since=0.0)
    with pytest.raises(Superseded) as caught:
        leases.heard(state, "a1", Heartbeat(incarnation=1), now=1.0)
    assert caught.value.details == {"incarnation": 2}
    assert leases.get("a1") is None
    leases.heard(state, "a1", Heartbeat(incarnation=2), now=1.0)
    # One that this node's log doesn't know yet is the newest there is.
    assert leases.heard(state, "a1", Heartbeat(incarnation=3), now=2.0).is_new
    assert held(leases, "a1").incarnation == 3


def test_a_successor_begins_anew() -> None:
    """Neither the counts nor the beats of a former process are taken for its own."""
    leases = Leases(listening_since=0.0)
    leases.heard(ONE, "a1", Heartbeat(counters=(("calls", 7),)), now=1.0, beat_known=4)
    heard = leases.heard(registered("a1", "a1"), "a1", BEAT, now=2.0)
    assert heard.is_new
    assert (held(leases, "a1").beat, held(leases, "a1").counters) == (1, ())


def test_silence_is_suspect_and_stays() -> None:
    """Silent for the lease is suspect, once, and still known; a beat ends it."""
    leases = Leases(listening_since=0.0)
    leases.heard(ONE, "a1", BEAT, now=1.0)
    assert swept(leases, since=1.0, until=30.0) == {"a1": 11.0}
    assert held(leases, "a1").is_suspect
    assert leases.suspects_count == 1
    heard = leases.heard(ONE, "a1", BEAT, now=30.2)
    assert (heard.is_new, heard.is_recovered) == (False, True)
    assert leases.suspects_count == 0
    assert swept(leases, since=30.5, until=40.0) == {}


@given(st.lists(st.integers(1, 120).map(lambda eighths: eighths / 8), min_size=1, max_size=12))
def test_only_silence_is_suspect(gaps: list[float]) -> None:
    """Whatever the rhythm, an instance is suspect exactly when it was silent for its lease."""
    leases = Leases(listening_since=0.0)
    heard_at = now = 0.0
    leases.heard(ONE, "a1", BEAT, now=now)
    for gap in gaps:
        while now + 0.5 < heard_at + gap:
            now += 0.5
            suspects = leases.overdue(now)
            assert held(leases, "a1").is_suspect == (now - heard_at >= 10.0)
            assert set(suspects) <= {"a1"}
        now = heard_at = heard_at + gap
        leases.heard(ONE, "a1", BEAT, now=now)
        assert not held(leases, "a1").is_suspect


def test_who_was_deaf_accuses_nobody() -> None:
    """A node that was paused listens for a whole lease before it calls anybody silent."""
    leases = Leases(listening_since=0.0)
    leases.heard(ONE, "a1", BEAT, now=1.0)
    assert leases.overdue(2.0) == ()
    assert leases.overdue(2.0 + PAUSE_SECONDS + 60) == ()
    woke = 2.0 + PAUSE_SECONDS + 60
    assert swept(leases, since=woke + 0.5, until=woke + 20) == {"a1": woke + 10}


def test_who_has_just_started_accuses_nobody() -> None:
    """A lease from before the node listened ends no earlier than a lease after that."""
    leases = Leases(listening_since=8.0)
    leases.heard(ONE, "a1", BEAT, now=1.0)
    assert swept(leases, since=8.0, until=30.0) == {"a1": 18.0}


def test_a_shorter_lease_ends_earlier() -> None:
    """A new grant holds from the beat that was answered with it."""
    slow = registered(instance("a1", wish=HeartbeatWish(ttl_ms=60_000)))
    leases = Leases(listening_since=0.0)
    leases.heard(slow, "a1", BEAT, now=0.0)
    leases.heard(ONE, "a1", BEAT, now=2.0)
    assert swept(leases, since=2.0, until=70.0) == {"a1": 12.0}


def test_a_lease_moves_with_the_beats() -> None:
    """The former home lets go when another heard a later beat, and only then."""
    leases = Leases(listening_since=0.0)
    leases.heard(ONE, "a1", BEAT, now=0.0, beat_known=4)
    assert not leases.release("a9", incarnation=1, beat=9)
    assert not leases.release("a1", incarnation=1, beat=0)
    assert not leases.release("a1", incarnation=1, beat=5)
    assert not leases.release("a1", incarnation=0, beat=9)
    assert leases.release("a1", incarnation=1, beat=6)
    assert leases.get("a1") is None
    assert swept(leases, since=0.0, until=30.0) == {}
    leases.heard(ONE, "a1", BEAT, now=0.0, beat_known=4)
    assert leases.release("a1", incarnation=2, beat=1)


def test_what_is_forgotten_is_gone() -> None:
    """An instance that was removed leaves nothing to become suspect."""
    leases = Leases(listening_since=0.0)
    leases.heard(ONE, "a1", BEAT, now=0.0)
    swept(leases, since=0.0, until=12.0)
    assert leases.forget("a1")
    assert not leases.forget("a1")
    assert (len(leases), leases.suspects_count) == (0, 0)


def test_a_sweep_is_short() -> None:
    """However many fall silent at once, a sweep takes a bounded part and the next goes on."""
    state: State = CROWDS[1_200]
    leases = Leases(listening_since=0.0)
    for agent_id in state.agents:
        leases.heard(state, agent_id, BEAT, now=0.0)
    found = swept(leases, since=0.0, until=12.0)
    assert len(found) == 1_200
    assert len(set(found.values())) == 3
    assert list(found.values()).count(min(found.values())) == POPS_MAX


def test_the_lease_follows_the_beats() -> None:
    """An instance that beats to another node has one home, and its old one lets go."""
    cluster = three("a1")
    cluster.homes = {"a1": "n1"}
    cluster.run(10.0)
    cluster.homes = {"a1": "n2"}
    cluster.run(30.0)
    assert {cluster.seen("a1", node).home for node in cluster.nodes} == {"n2"}
    assert cluster["n1"].tell(0, now=cluster.now).reports[0].beat == 0


def test_a_heartbeat_ahead_of_the_log_counts_when_the_log_comes() -> None:
    """A node that hasn't applied a registration yet takes the beat of its instance all the same."""
    cluster = three("a1")
    cluster.beat("n1", "a1", Heartbeat(incarnation=2))
    assert cluster.seen("a1").state == "pending"
    cluster.apply(Register(instance=instance("a1")))
    assert cluster.seen("a1").state == "healthy"
    cluster.gossip()
    assert cluster.seen("a1", "n3").state == "healthy"
