"""One snapshot on its way, and one being taken."""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft import transfer
from reachnode.peers.raft.disk import Disk, Performed, SealSnapshot, WriteSnapshot
from reachnode.peers.raft.messages import SnapshotAck, SnapshotPiece
from reachnode.peers.raft.snapshot import SnapshotHeader, write_snapshot
from reachnode.peers.raft.storage import Storage, snapshot_name
from reachnode.peers.raft.transfer import (
    PIECE_BYTES,
    START_OVER,
    WINDOW_BYTES,
    SnapshotSending,
    SnapshotTaking,
)
from reachnode.registry.state import State
from sim.disk import FakeFiles
from tests.strategies import fresh_state, states

HEADER = SnapshotHeader("c1", 40, 3)


def file_of(state: State, header: SnapshotHeader = HEADER) -> bytes:
    """Return a snapshot's bytes."""
    return b"".join(write_snapshot(state, header))


@dataclass(slots=True)
class Leader:
    """A sealed snapshot of index 40 being sent, and what left."""

    data: bytes
    files: FakeFiles = field(default_factory=FakeFiles)
    disk: Disk = field(default_factory=Disk)
    pieces: deque[SnapshotPiece] = field(default_factory=deque)
    is_connected: bool = True
    sending: SnapshotSending = field(init=False)

    def __post_init__(self) -> None:
        self.files.write(snapshot_name(40), 0, self.data)
        self.sending = SnapshotSending(term=7, index=40, disk=self.disk, send=self._send)

    def _send(self, piece: SnapshotPiece) -> bool:
        if self.is_connected:
            self.pieces.append(piece)
        return self.is_connected

    def read(self) -> None:
        """Let the disk read what is asked for."""
        while not self.disk.is_idle:
            self.disk.settle(Storage(self.files).perform(self.disk.take(0.0)))

    def ack(self, offset: int, *, index: int = 40, term: int = 7, now: float = 1.0) -> None:
        """Let the follower answer."""
        self.sending.hear(SnapshotAck(term, index, offset), now)


def piece(data: bytes, offset: int = 0, *, index: int = 40, is_last: bool = True) -> SnapshotPiece:
    """Return a piece of term 7."""
    return SnapshotPiece(term=7, index=index, offset=offset, data=data, is_last=is_last)


# --- sending


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 10 * PIECE_BYTES + 3])
def test_a_file_of_any_size_is_sent_whole_within_the_window(size: int) -> None:
    """In order, a few pieces at a time; the last one says so."""
    data = random.Random(size).randbytes(size)
    leader = Leader(data)
    leader.sending.go_on()
    got = bytearray()
    while not leader.disk.is_idle or leader.pieces:
        leader.read()
        assert sum(len(one.data) for one in leader.pieces) <= WINDOW_BYTES
        one = leader.pieces.popleft()
        assert one.offset == len(got)
        got += one.data
        assert one.is_last == (len(one.data) < PIECE_BYTES)
        leader.ack(len(got))
    assert bytes(got) == data
    assert leader.sending.is_ended
    assert not leader.sending.is_gone


def test_without_an_answer_the_window_ends() -> None:
    """And goes on with the answer; a strange one opens it no further than what was sent."""
    leader = Leader(bytes(20 * PIECE_BYTES))
    leader.sending.go_on()
    leader.read()
    assert len(leader.pieces) == 4
    leader.ack(1 << 40)
    leader.read()
    assert len(leader.pieces) == 8
    assert leader.sending.acked_offset == WINDOW_BYTES


def test_one_piece_is_read_at_a_time() -> None:
    """Asking again while one is being read reads nothing twice."""
    leader = Leader(bytes(20 * PIECE_BYTES))
    leader.sending.go_on()
    leader.sending.go_on()
    assert len(leader.disk.take(0.0)) == 1


def test_answers_of_another_transfer_mean_nothing() -> None:
    """Another index, or another term; not even as progress."""
    leader = Leader(bytes(20 * PIECE_BYTES))
    leader.sending.go_on()
    leader.read()
    leader.ack(PIECE_BYTES, index=39)
    leader.ack(START_OVER, term=6)
    assert leader.sending.progress_at == 0.0
    assert not leader.sending.is_gone
    leader.ack(PIECE_BYTES, now=5.0)
    assert leader.sending.progress_at == 5.0


def test_a_transfer_is_over_when_its_file_or_its_way_is_gone() -> None:
    """Or when the follower asks to start over: somebody begins a new one."""
    replaced = Leader(bytes(10))
    replaced.files.rename(snapshot_name(40), snapshot_name(50))
    cut = Leader(bytes(10))
    cut.is_connected = False
    refused = Leader(bytes(10))
    for leader in (replaced, cut, refused):
        leader.sending.go_on()
        leader.read()
    refused.ack(START_OVER)
    for leader in (replaced, cut, refused):
        assert leader.sending.is_gone
        leader.sending.go_on()
        assert leader.disk.is_idle


# --- taking


@given(states, st.integers(0, 2**32))
def test_a_snapshot_in_any_pieces_is_taken_whole(state: State, seed: int) -> None:
    """Its state is given with the last piece; its file is written and sealed by then."""
    header = SnapshotHeader(state.cluster_id, 40, 3)
    data, draw = file_of(state, header), random.Random(seed)
    disk = Disk()
    taking = SnapshotTaking(disk)
    offset = 0
    while True:
        count = draw.randint(1, 300)
        is_last = offset + count >= len(data)
        part = data[offset : offset + count]
        acked, received = taking.take("n1", piece(part, offset, is_last=is_last))
        offset += len(part)
        assert acked == offset
        if is_last:
            break
        assert received is None
    assert received is not None
    assert (received.index, received.term, received.state) == (40, 3, state)
    files = FakeFiles()
    writes = disk.take(0.0)
    assert Storage(files).perform(writes) == Performed(count=len(writes))
    assert files.read(snapshot_name(40)) == data


def test_pieces_that_do_not_follow_ask_to_start_over() -> None:
    """A gap, a repeat, another sender, another snapshot, or no beginning at all."""
    data = file_of(fresh_state())
    taking = SnapshotTaking(Disk())
    assert taking.take("n1", piece(data[5:], 5)) == (START_OVER, None)
    assert taking.take("n1", piece(data[:9], is_last=False)) == (9, None)
    assert taking.take("n1", piece(data[10:], 10)) == (START_OVER, None)
    assert taking.take("n1", piece(data[5:], 5)) == (START_OVER, None)
    assert taking.take("n2", piece(data[9:], 9)) == (START_OVER, None)
    assert taking.take("n1", piece(data[9:], 9, index=41)) == (START_OVER, None)
    assert taking.take("n1", piece(data[9:20], 9, is_last=False)) == (20, None)
    assert taking.refused_count == 0


def test_a_new_beginning_forgets_the_former_one() -> None:
    """Whoever sends it."""
    data = file_of(fresh_state())
    taking = SnapshotTaking(Disk())
    taking.take("n1", piece(data[:9], is_last=False))
    offset, received = taking.take("n2", piece(data))
    assert offset == len(data)
    assert received is not None


@given(st.data())
def test_a_flipped_bit_is_refused_and_nothing_is_sealed(data: st.DataObject) -> None:
    """What is held here stays as it is; the leader is asked to start over."""
    whole = bytearray(file_of(fresh_state()))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    disk = Disk()
    taking = SnapshotTaking(disk)
    half = len(whole) // 2
    answers = [
        taking.take("n1", piece(bytes(whole[:half]), is_last=False)),
        taking.take("n1", piece(bytes(whole[half:]), half)),
    ]
    assert answers[-1] == (START_OVER, None)
    assert taking.refused_count == 1
    assert not any(isinstance(write, SealSnapshot) for write in disk.take(0.0))


def test_a_snapshot_that_ends_early_or_is_another_one_is_refused() -> None:
    """Of another index than announced, or of another cluster than its state."""
    state = fresh_state()
    disk = Disk()
    taking = SnapshotTaking(disk)
    assert taking.take("n1", piece(file_of(state)[:-1])) == (START_OVER, None)
    assert taking.take("n1", piece(file_of(state), index=41)) == (START_OVER, None)
    other = file_of(state, SnapshotHeader("another", 40, 3))
    assert taking.take("n1", piece(other)) == (START_OVER, None)
    assert taking.refused_count == 3
    assert disk.is_idle


def test_a_snapshot_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is read."""
    data = file_of(fresh_state())
    monkeypatch.setattr(transfer, "SNAPSHOT_BYTES_MAX", len(data) - 1)
    taking = SnapshotTaking(Disk())
    assert taking.take("n1", piece(data)) == (START_OVER, None)
    assert taking.refused_count == 1
    monkeypatch.setattr(transfer, "SNAPSHOT_BYTES_MAX", len(data))
    assert taking.take("n1", piece(data))[1] is not None


def test_a_taking_that_was_forgotten_starts_over() -> None:
    """Nothing of it is kept."""
    data = file_of(fresh_state())
    disk = Disk()
    taking = SnapshotTaking(disk)
    taking.take("n1", piece(data[:9], is_last=False))
    taking.forget()
    assert taking.take("n1", piece(data[9:], 9)) == (START_OVER, None)
    assert [type(write) for write in disk.take(0.0)] == [WriteSnapshot]
