"""The state at this node: applying what is committed, checking it, writing it down.

States are immutable, so both kinds of slow work keep the one they were begun with and go
on in slices while newer ones are made: the digest that is compared with the other nodes'
every thousand entries, and the snapshot that lets the journal be trimmed.
"""

from collections.abc import Iterator

import msgspec
from immutables import Map
from msgspec.structs import replace

from reachnode.errors import UnknownCommand
from reachnode.peers.raft.disk import Disk, SealSnapshot, WriteSnapshot
from reachnode.peers.raft.failstop import failstop
from reachnode.peers.raft.messages import CHECK_DIGEST
from reachnode.peers.raft.opening import REGULAR
from reachnode.peers.raft.snapshot import SnapshotHeader, write_snapshot
from reachnode.registry.apply import apply_all
from reachnode.registry.codec import decode_batch
from reachnode.registry.commands import Command
from reachnode.registry.outcomes import Outcome
from reachnode.registry.snapshot import Digester, dump
from reachnode.registry.state import State

DIGESTS_MAX = 8
"""Digests remembered for comparison; a node further behind compares the next one."""
SNAPSHOT_BYTES_WAITING_MAX = 1 << 22
"""Bytes of a snapshot that may wait for the disk."""
NEW_SNAPSHOT = "snapshot.new"


class DigestEntry(msgspec.Struct, frozen=True, array_like=True):
    """A leader's word on the state after the entry at `index`."""

    index: int
    digest: str


def pack_digest(index: int, digest: str) -> bytes:
    """Return the command that makes every node compare its digest."""
    return CHECK_DIGEST + msgspec.msgpack.encode(DigestEntry(index, digest))


class Digests:
    """The state's digests at every so many entries, and what others say they are.

    Args:
        every: Entries between two digests.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._known: dict[int, str] = {}
        self._claims: dict[int, str] = {}
        self._work: tuple[int, Iterator[bytes], Digester] | None = None
        self._pinned: tuple[int, State] | None = None

    def applied(self, index: int, state: State) -> None:
        """Keep the state for a digest if its index is one of those compared."""
        if index % self._every == 0:
            self._pinned = (index, state)

    def claim(self, index: int, digest: str) -> None:
        """Take a leader's word; compare now, or when our own is made.

        Raises:
            FailStop: Ours differs.
        """
        self._claims[index] = digest
        _bound(self._claims)
        self._compare(index)

    def step(self) -> tuple[int, str] | None:
        """Do one slice; return index and digest when one is finished.

        Raises:
            FailStop: It differs from what a leader said.
        """
        if self._work is None:
            if self._pinned is None:
                return None
            index, state = self._pinned
            self._pinned = None
            self._work = (index, dump(state), Digester())
        index, pieces, digester = self._work
        piece = next(pieces, None)
        if piece is not None:
            digester.feed(piece)
            return None
        self._work = None
        self._known[index] = digester.hex()
        _bound(self._known)
        self._compare(index)
        return index, self._known[index]

    @property
    def is_busy(self) -> bool:
        """Whether there is a slice to do."""
        return self._work is not None or self._pinned is not None

    def _compare(self, index: int) -> None:
        """Stop the node if both digests are known and differ."""
        ours, theirs = self._known.get(index), self._claims.get(index)
        if ours is not None and theirs is not None and ours != theirs:
            what = f"at index {index} this node's table has digest {ours}, the leader's {theirs}"
            raise failstop("digest_mismatch", what)


def _bound(digests: dict[int, str]) -> None:
    """Forget the oldest beyond the limit."""
    while len(digests) > DIGESTS_MAX:
        del digests[min(digests)]


class SnapshotMaker:
    """Writes one snapshot at a time through the disk worker.

    idle -> writing (slices) -> sealing (waits for the disk) -> finished -> idle
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._header: SnapshotHeader | None = None
        self._slices: Iterator[bytes] | None = None
        self._offset = 0
        self._sealed_number: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether none is being made."""
        return self._header is None

    @property
    def is_writing(self) -> bool:
        """Whether there is a slice to do now."""
        return self._slices is not None and self._disk.bytes_waiting < SNAPSHOT_BYTES_WAITING_MAX

    def begin(self, state: State, *, index: int, term: int) -> None:
        """Pin a state and begin to write it."""
        assert self.is_idle
        self._header = SnapshotHeader(state.cluster_id, index, term)
        self._slices = write_snapshot(state, self._header)
        self._offset = 0

    def step(self) -> None:
        """Do one slice."""
        assert self._slices is not None
        assert self._header is not None
        data = next(self._slices, None)
        if data is None:
            self._slices = None
            seal = SealSnapshot(name=NEW_SNAPSHOT, index=self._header.index)
            self._sealed_number = self._disk.submit(seal)
            return
        self._disk.submit(WriteSnapshot(name=NEW_SNAPSHOT, offset=self._offset, data=data))
        self._offset += len(data)

    def take_finished(self) -> SnapshotHeader | None:
        """Return the header of a snapshot that is durable now, once."""
        if self._sealed_number is None or self._sealed_number > self._disk.done:
            return None
        header = self._header
        self.abandon()
        return header

    def abandon(self) -> None:
        """Forget the one in progress."""
        self._header = self._slices = self._sealed_number = None


def without_requests(state: State) -> State:
    """Return the state with no request remembered: what a node without the window would hold."""
    return replace(state, requests=Map(), requests_order=Map(), requests_count=0, requests_floor=0)


class Machine:
    """The replicated state as this node has applied it.

    Args:
        state: After the entry at `index`.
        digest_every: Entries between two comparisons.
    """

    def __init__(self, state: State, *, index: int, digest_every: int) -> None:
        self.state = state
        self.index = index
        self.digests = Digests(digest_every)
        self.before = state
        """The state before the last entry, or snapshot."""
        self.commands: tuple[Command, ...] | None = ()
        """What stood in the last entry; None for a snapshot, which may have changed all."""

    def apply(self, command: bytes) -> tuple[Outcome, ...]:
        """Apply the next entry; return one outcome per change in it.

        Raises:
            FailStop: The entry is of a later version, or digests differ.
        """
        index = self.index + 1
        self.before, self.commands = self.state, ()
        outcomes: tuple[Outcome, ...] = ()
        if command[:1] == REGULAR:
            try:
                envelopes = decode_batch(command[1:])
                self.state, outcomes = apply_all(self.state, index, envelopes)
                self.commands = tuple(envelope.command for envelope in envelopes)
            except UnknownCommand as error:
                raise failstop("level_unknown", f"entry {index}: {error}") from error
        elif command[:1] == CHECK_DIGEST:
            entry = msgspec.msgpack.decode(command[1:], type=DigestEntry)
            self.digests.claim(entry.index, entry.digest)
        self.index = index
        self.digests.applied(index, self.state)
        return outcomes

    def install(self, state: State, index: int) -> None:
        """Go on from a snapshot."""
        self.before, self.commands = self.state, None
        self.state, self.index = state, index
