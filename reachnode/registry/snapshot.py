"""The bytes of a whole state: written piece by piece, read piece by piece, digested.

A stream of records, each a length (4 bytes, big-endian) and msgpack. A head comes first and
says how many of each kind follow: revisions of the settings, members, agents, requests. Equal
states give equal bytes whatever their history. Where the stream is cut into pieces means
nothing. Whether the bytes came whole from the disk (checksums) is not looked at here.
"""

import hashlib
from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import TypeVar

import msgspec
from immutables import Map

from reachnode.errors import BadSnapshot
from reachnode.model.members import Member
from reachnode.model.nouns import Noun
from reachnode.model.settings import SettingsRevision
from reachnode.registry.agents import Offers, offered
from reachnode.registry.commands import LEVEL_MAX
from reachnode.registry.outcomes import Outcome
from reachnode.registry.state import Record, Remembered, State

__all__ = ["BadSnapshot", "Digester", "Loader", "digest_of", "dump"]

FORMAT = 1
PIECE_BYTES_MAX = 32 * 1024
"""A piece is at most this long, unless a single record is longer."""
RECORD_BYTES_MAX = 16 * 1024 * 1024
RUN_NAMES_MAX = 2_000
"""So many names are sorted at a time, which takes about 0.4 ms."""
LENGTH_BYTES = 4
DIGEST_BYTES = 16


class _Head(Noun, frozen=True, kw_only=True):
    """All that is single in a state, and how many records of each kind follow."""

    format: int
    cluster_id: str
    time_ms: int
    level: int
    incarnation: int
    requests_count: int
    requests_floor: int
    requests_max: int
    settings: int
    members: int
    agents: int
    requests: int


class _Request(Noun, frozen=True, kw_only=True):
    """One remembered request."""

    request_id: str
    index: int
    outcome: Outcome


_Named = TypeVar("_Named", Member, Record)
_Story = Generator[None, bytes, State]

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_HEAD = msgspec.msgpack.Decoder(_Head)
_REVISION = msgspec.msgpack.Decoder(SettingsRevision)
_MEMBER = msgspec.msgpack.Decoder(Member)
_RECORD = msgspec.msgpack.Decoder(Record)
_REQUEST = msgspec.msgpack.Decoder(_Request)


def dump(state: State) -> Iterator[bytes]:
    """Yield the bytes of a state in pieces, each made only when it is asked for.

    A piece takes a fraction of a millisecond. While many names are put in order, pieces may
    be empty, so that whoever takes them can pause all the same.
    """
    piece = bytearray()
    for record in _records(state):
        if record is None:
            yield bytes(piece)
            piece.clear()
            continue
        encoded = _ENCODER.encode(record)
        if piece and len(piece) + LENGTH_BYTES + len(encoded) > PIECE_BYTES_MAX:
            yield bytes(piece)
            piece.clear()
        piece += len(encoded).to_bytes(LENGTH_BYTES, "big")
        piece += encoded
    yield bytes(piece)


def _records(state: State) -> Iterator[Noun | None]:
    yield _Head(
        format=FORMAT,
        cluster_id=state.cluster_id,
        time_ms=state.time_ms,
        level=state.level,
        incarnation=state.incarnation,
        requests_count=state.requests_count,
        requests_floor=state.requests_floor,
        requests_max=state.requests_max,
        settings=len(state.settings_history),
        members=len(state.members),
        agents=len(state.agents),
        requests=len(state.requests),
    )
    yield from state.settings_history
    yield from _in_order(state.members)
    yield from _in_order(state.agents)
    for at in range(state.requests_count - len(state.requests), state.requests_count):
        request_id = state.requests_order[at % state.requests_max]
        kept = state.requests[request_id]
        yield _Request(request_id=request_id, index=kept.index, outcome=kept.outcome)


def _in_order(records: Map[str, _Named]) -> Iterator[_Named | None]:
    """Yield records by name, and None where the sorting of their names may pause."""
    names = iter(records)
    runs = []
    while run := sorted(islice(names, RUN_NAMES_MAX)):
        runs.append(run)
        if len(run) == RUN_NAMES_MAX:
            yield None
    for name in merge(*runs):
        yield records[name]


class Loader:
    """Makes a state of a dump that comes piece by piece, however it was cut."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._at = 0
        self._state: State | None = None
        self._story = _read()
        next(self._story)

    def feed(self, piece: bytes) -> None:
        """Take the next piece; what it holds whole is read at once.

        Raises:
            BadSnapshot: It isn't what a dump may hold here. The loader is of no more use.
        """
        self._waiting += piece
        start = 0
        while len(self._waiting) - start >= LENGTH_BYTES:
            begin = start + LENGTH_BYTES
            length = int.from_bytes(self._waiting[start:begin], "big")
            if self._state or length > RECORD_BYTES_MAX:
                raise BadSnapshot(f"no record may stand at byte {self._at + start}")
            if len(self._waiting) < begin + length:
                break
            self._take(bytes(self._waiting[begin : begin + length]), self._at + start)
            start = begin + length
        del self._waiting[:start]
        self._at += start

    def finish(self) -> State:
        """Return the state that was read.

        Raises:
            BadSnapshot: The dump isn't whole, or something follows it.
        """
        if self._state is None:
            raise BadSnapshot(f"it ends early, at byte {self._at + len(self._waiting)}")
        if self._waiting:
            raise BadSnapshot(f"something follows its end, at byte {self._at}")
        return self._state

    def _take(self, record: bytes, at: int) -> None:
        try:
            self._story.send(record)
        except StopIteration as end:
            self._state = end.value
        except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
            raise BadSnapshot(f"the record at byte {at} can't be read: {fault}") from fault


def _read() -> _Story:
    """Take a dump record by record and return its state; ValueError says what is wrong."""
    head = _HEAD.decode((yield))
    _check(head)
    history: tuple[SettingsRevision, ...] = ()
    for _ in range(head.settings):
        history = (*history, _REVISION.decode((yield)))
    members = Map[str, Member]().mutate()
    for _ in range(head.members):
        member = _MEMBER.decode((yield))
        members[member.member_id] = member
    agents = Map[str, Record]().mutate()
    capabilities: Offers = Map()
    down = Map[str, int]().mutate()
    for _ in range(head.agents):
        record = _RECORD.decode((yield))
        agents[record.instance.agent_id] = record
        if record.down_at_ms is not None:
            down[record.instance.agent_id] = record.down_at_ms
        capabilities = offered(capabilities, None, record.instance)
    requests = Map[str, Remembered]().mutate()
    order = Map[int, str]().mutate()
    for at in range(head.requests_count - head.requests, head.requests_count):
        request = _REQUEST.decode((yield))
        requests[request.request_id] = Remembered(request.index, request.outcome)
        order[at % head.requests_max] = request.request_id
    counts = (len(members), len(agents), len(requests))
    if counts != (head.members, head.agents, head.requests):
        raise ValueError("a name stands in it twice")
    return State(
        cluster_id=head.cluster_id,
        time_ms=head.time_ms,
        level=head.level,
        incarnation=head.incarnation,
        settings_history=history,
        members=members.finish(),
        agents=agents.finish(),
        capabilities=capabilities,
        down=down.finish(),
        requests=requests.finish(),
        requests_order=order.finish(),
        requests_count=head.requests_count,
        requests_floor=head.requests_floor,
        requests_max=head.requests_max,
    )


def _check(head: _Head) -> None:
    if head.format != FORMAT:
        raise ValueError(f"format {head.format} isn't {FORMAT}: run the program that wrote it")
    if head.level > LEVEL_MAX:
        raise ValueError(f"level {head.level} is above {LEVEL_MAX}: run the newer program")
    kept = min(head.requests_count, head.requests_max)
    least = min(head.settings - 1, head.members, head.agents, kept, head.requests_max - 1)
    if least < 0 or head.requests != kept:
        raise ValueError("its counts contradict each other")


class Digester:
    """Digests a dump as its pieces come; how it was cut doesn't matter."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        self._hash.update(piece)

    def hex(self) -> str:
        """Return the digest of what came so far: 32 hexadecimal digits (BLAKE2b, 128 bits)."""
        return self._hash.hexdigest()


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the digest of a dump: 32 hexadecimal digits."""
    digester = Digester()
    for piece in pieces:
        digester.feed(piece)
    return digester.hex()
