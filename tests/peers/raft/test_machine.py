"""The state at this node: applied, compared, written down."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import Disk, Performed, SealSnapshot, WriteSnapshot
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.machine import (
    DIGESTS_MAX,
    SNAPSHOT_BYTES_WAITING_MAX,
    DigestEntry,
    Digests,
    Machine,
    SnapshotMaker,
    pack_digest,
)
from reachnode.peers.raft.opening import NO_OP, REGULAR
from reachnode.peers.raft.snapshot import SnapshotHeader, SnapshotReader
from reachnode.registry.codec import encode_batch, encode_envelope
from reachnode.registry.commands import Advance, Command, Envelope
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.snapshot import digest_of, dump
from reachnode.registry.state import State
from tests.strategies import envelopes, fresh_state, states


def batch(*commands: Command) -> bytes:
    """Return an entry with these changes, each under an id of its own."""
    made = [
        encode_envelope(Envelope(request_id=f"r{at} {command}", since_index=0, command=command))
        for at, command in enumerate(commands)
    ]
    return REGULAR + encode_batch(made)


def machine(every: int = 10) -> Machine:
    """Return a machine at the beginning of a log."""
    return Machine(fresh_state(), index=1, digest_every=every)


def finish(digests: Digests) -> tuple[int, str] | None:
    """Do all slices; return the last digest."""
    found = None
    while digests.is_busy:
        found = digests.step() or found
    return found


# --- applying


def test_each_entry_moves_the_index_and_tells_an_outcome_per_change() -> None:
    """Changes of one batch are applied in order; an entry of the engine's own has none."""
    one = machine()
    outcomes = one.apply(batch(Advance(by_ms=5), Advance(by_ms=0), Advance(by_ms=7)))
    assert (one.index, one.state.time_ms) == (2, 12)
    assert [type(outcome) for outcome in outcomes] == [Applied, Refused, Applied]
    assert one.apply(NO_OP) == ()
    assert one.apply(batch()) == ()
    assert one.index == 4


@given(st.lists(st.lists(envelopes, max_size=3), max_size=8))
def test_two_machines_that_apply_the_same_are_the_same(log: list[list[Envelope]]) -> None:
    """State, index and outcomes."""
    one, other = machine(), machine()
    for made in log:
        command = REGULAR + encode_batch([encode_envelope(envelope) for envelope in made])
        assert one.apply(command) == other.apply(command)
    assert (one.state, one.index) == (other.state, other.index)


def test_an_entry_of_a_later_version_stops_the_node() -> None:
    """To guess would make its state another than the others'; the index stays."""
    one = machine()
    with pytest.raises(FailStop) as caught:
        one.apply(REGULAR + b"\x63")
    assert (caught.value.status, caught.value.word) == (79, "level_unknown")
    assert "entry 2" in caught.value.message
    assert one.index == 1


def test_a_snapshot_takes_the_place_of_the_state() -> None:
    """The next entry follows it."""
    one = machine()
    state = fresh_state(requests_max=9)
    one.install(state, 30)
    assert one.state is state
    one.apply(NO_OP)
    assert one.index == 31


# --- digests


def test_a_digest_is_made_every_so_many_entries() -> None:
    """Of the state at that index, whatever came after it."""
    one = machine(every=3)
    one.apply(batch(Advance(by_ms=1)))
    assert not one.digests.is_busy
    assert one.digests.step() is None
    one.apply(batch(Advance(by_ms=2)))
    at_three = one.state
    one.apply(batch(Advance(by_ms=3)))
    assert finish(one.digests) == (3, digest_of(dump(at_three)))
    assert not one.digests.is_busy


def test_equal_digests_pass_whichever_comes_first() -> None:
    """The leader's word may be before this node's own, or after."""
    for is_first in (True, False):
        one = machine(every=2)
        one.apply(batch(Advance(by_ms=1)))
        claim = pack_digest(2, digest_of(dump(one.state)))
        if is_first:
            one.apply(claim)
        finish(one.digests)
        if not is_first:
            one.apply(claim)


def test_digests_that_differ_stop_the_node() -> None:
    """Whichever comes first; the message has both, so that they can be reported."""
    claim = pack_digest(2, "0" * 32)
    late = machine(every=2)
    late.apply(batch(Advance(by_ms=1)))
    finish(late.digests)
    with pytest.raises(FailStop, match=f"at index 2 .* digest .*{'0' * 32}") as caught:
        late.apply(claim)
    assert caught.value.status == 73
    early = machine(every=2)
    early.apply(batch(Advance(by_ms=1)))
    early.apply(claim)
    with pytest.raises(FailStop, match="digest_mismatch"):
        finish(early.digests)


@given(st.permutations(range(2 * DIGESTS_MAX)))
def test_few_digests_are_remembered(order: list[int]) -> None:
    """The newest ones; claims are as many."""
    digests = Digests(1)
    for index in order:
        digests.claim(index, "a")
    assert sorted(digests._claims) == list(range(DIGESTS_MAX, 2 * DIGESTS_MAX))
    for index in sorted(order):
        digests._claims.clear()
        digests.applied(index, fresh_state())
        finish(digests)
    assert sorted(digests._known) == list(range(DIGESTS_MAX, 2 * DIGESTS_MAX))


def test_a_newer_state_waits_for_the_digest_under_way() -> None:
    """Of several that were due meanwhile, the newest is made."""
    digests = Digests(1)
    digests.applied(1, fresh_state())
    digests.step()
    digests.applied(2, fresh_state())
    digests.applied(3, fresh_state())
    found = []
    while digests.is_busy:
        found.append(digests.step())
    assert [one[0] for one in found if one is not None] == [1, 3]


# --- snapshots


def sealed_index(disk: Disk) -> int | None:
    """Return the index of the seal that waits."""
    seals = [write for write in disk.take(0.0) if isinstance(write, SealSnapshot)]
    return seals[0].index if seals else None


@given(states)
def test_a_snapshot_is_written_in_slices_and_finished_when_durable(state: State) -> None:
    """Its bytes, in order, are the state it was begun with; it is told once."""
    disk = Disk()
    maker = SnapshotMaker(disk)
    maker.begin(state, index=40, term=3)
    while maker.is_writing:
        maker.step()
    assert not maker.is_idle
    reader = SnapshotReader("it")
    writes = disk.take(0.0)
    offset = 0
    for write in writes[:-1]:
        assert isinstance(write, WriteSnapshot)
        assert write.offset == offset
        offset += len(write.data)
        reader.feed(write.data)
    header = SnapshotHeader(state.cluster_id, 40, 3)
    assert reader.finish()[:2] == (header, state)
    assert sealed_index(disk) == 40
    disk.settle(Performed(count=len(writes) - 1))
    assert maker.take_finished() is None
    disk.settle(Performed(count=1))
    assert maker.take_finished() == header
    assert maker.take_finished() is None
    assert maker.is_idle


def test_a_slow_disk_holds_the_snapshot_back() -> None:
    """No more than so much of it waits in memory."""
    disk = Disk()
    maker = SnapshotMaker(disk)
    maker.begin(fresh_state(), index=40, term=3)
    filler = bytes(SNAPSHOT_BYTES_WAITING_MAX)
    disk.submit(WriteSnapshot(name="x", offset=0, data=filler))
    writing = [maker.is_writing]
    disk.settle(Performed(count=1))
    assert [*writing, maker.is_writing] == [False, True]


def test_an_abandoned_snapshot_is_never_told() -> None:
    """Its seal may still come to be durable; the next one begins anew."""
    disk = Disk()
    maker = SnapshotMaker(disk)
    maker.begin(fresh_state(), index=40, term=3)
    while maker.is_writing:
        maker.step()
    maker.abandon()
    disk.settle(Performed(count=len(disk.take(0.0))))
    assert maker.take_finished() is None
    maker.begin(fresh_state(), index=50, term=3)
    maker.step()
    (write,) = disk.take(0.0)
    assert isinstance(write, WriteSnapshot)
    assert write.offset == 0


def test_a_digest_entry_is_read_by_any_node() -> None:
    """The kind of entry, then index and digest."""
    packed = pack_digest(1000, "ab")
    assert packed[:1] == b"\x04"
    assert msgspec.msgpack.decode(packed[1:], type=DigestEntry) == DigestEntry(1000, "ab")
