"""What a data directory may hold after a crash, kept apart from the code that writes it.

Everything submitted to a disk is entered here, and what the disk reported as durable is
ticked off. After a crash each part of the directory (identity, vote, journal, newest
snapshot) must be what was ticked off last, or what was submitted behind it. Unless a sync
failed, the parts must also fit together: the first so many writes, and nothing of the rest.

The ledger outlives the pretend processes. It also knows what the cluster has committed,
which no disk may tell differently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from reachnode.model.agents import Instance
from reachnode.peers.raft.disk import (
    AppendEntry,
    CutTail,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteVote,
)
from reachnode.peers.raft.identity import Identity, pack_identity
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.opening import Entry
from reachnode.peers.raft.snapshot import SnapshotHeader, write_snapshot
from reachnode.registry.apply import apply_batch
from reachnode.registry.codec import encode_batch, encode_envelope
from reachnode.registry.commands import Envelope, Register
from reachnode.registry.state import State, genesis

FOUNDERS = {"n1": "d1", "n2": "d2", "n3": "d3"}
UNFOUNDED = Identity(member="n1", incarnation="d1")
FOUNDED = Identity(member="n1", incarnation="d1", cluster_id="c", founders=FOUNDERS)

Value = object
"""What one part of the directory holds; None before it was written."""
Place = tuple[int, int]
"""An index, and the term of the entry there."""
Log = tuple[Place, tuple[Entry, ...]]
"""The base, and what follows it."""


@lru_cache(maxsize=1)
def _first_state() -> State:
    """Return a state that takes more than a sector."""
    state = genesis("c", FOUNDERS)
    for name in ("a1", "a2"):
        command = Register(instance=Instance(agent_id=name, agent=name, name=name * 150))
        envelope = Envelope(request_id=name, since_index=1, command=command)
        state, _ = apply_batch(state, 2, encode_batch([encode_envelope(envelope)]))
    return state


@lru_cache(maxsize=1_000)
def state_at(index: int) -> State:
    """Return the state of the pretend cluster after the entry at an index."""
    return msgspec.structs.replace(_first_state(), time_ms=index)


@lru_cache(maxsize=1_000)
def snapshot_bytes(index: int, term: int) -> bytes:
    """Return the bytes of the snapshot at an index."""
    return b"".join(write_snapshot(state_at(index), SnapshotHeader("c", index, term)))


@dataclass(slots=True)
class Part:
    """One part of a directory: what is surely there, and what may have taken its place."""

    sure: Value = None
    later: list[tuple[int, Value]] = field(default_factory=list)
    """Write number and value; the number is 0 for what an earlier process wrote."""

    @property
    def newest(self) -> Value:
        """What the process believes is there."""
        return self.later[-1][1] if self.later else self.sure

    def values(self) -> list[Value]:
        """Return what may be there, oldest first."""
        return [self.sure, *[value for _, value in self.later]]

    def value_after(self, number: int) -> Value:
        """Return what is there if exactly the writes up to `number` were made."""
        made = [value for one, value in self.later if one <= number]
        return made[-1] if made else self.sure

    def settle(self, done: int) -> None:
        """Make sure what was written up to a number."""
        places = [i for i, (number, _) in enumerate(self.later) if 0 < number <= done]
        if places:
            self.keep(places[-1] + 1)

    def settle_former(self) -> None:
        """Make sure what was left of an earlier process."""
        self.keep(sum(number == 0 for number, _ in self.later))

    def keep(self, place: int) -> None:
        """Make sure the value at a place among `values`, and what is behind it possible."""
        self.sure = self.values()[place]
        del self.later[:place]


class Ledger:
    """One directory through the lives of several processes."""

    def __init__(self) -> None:
        self.identity, self.vote, self.log, self.snapshot = Part(), Part(), Part(), Part()
        self.parts = (self.identity, self.vote, self.log, self.snapshot)
        self.committed: list[Entry] = []
        """What the cluster has committed, from index 2 on."""
        self.commit_told = 1
        """The highest commit index that a disk was ever told."""
        self.read_faults: list[str] = []
        self._is_ordered = True
        self._renewed_number: int | None = None
        """The first write of this process that makes all earlier names durable."""

    # --- what is written

    def submitted(self, number: int, write: Write) -> None:
        """Enter a write."""
        match write:
            case WriteIdentity(data):
                self.identity.later.append((number, data))
            case WriteVote():
                vote = (write.term, write.voted_for, dict(write.notes))
                self.vote.later.append((number, vote))
            case SealSnapshot(index=index):
                self.snapshot.later.append((number, (index, self.term_at(index))))
            case RewriteJournal():
                if self._renewed_number is None:
                    self._renewed_number = number
                log = ((write.base_index, write.base_term), write.entries)
                self.log.later.append((number, log))
            case AppendEntry(entry):
                base, entries = as_log(self.log.newest)
                self.log.later.append((number, (base, (*entries, entry))))
            case CutTail(index):
                base, entries = as_log(self.log.newest)
                self.log.later.append((number, (base, entries[: index - base[0] - 1])))
            case _:
                return

    def settled(self, done: int) -> None:
        """Tick off the writes up to a number."""
        for part in self.parts:
            part.settle(done)
        if self._renewed_number is not None and done >= self._renewed_number:
            for part in self.parts:
                part.settle_former()

    def folded(self, number: int) -> None:
        """Take note that a new journal in one write replaces all that wait from `number` on."""
        self._is_ordered = False
        self.log.later = [(min(one, number), value) for one, value in self.log.later]

    def commit(self, entries: Sequence[Entry]) -> None:
        """Take note of what the cluster has committed."""
        for entry in entries:
            if entry[1] <= self.commit_index:
                assert entry == self.committed[entry[1] - 2]
            else:
                assert entry[1] == self.commit_index + 1
                self.committed.append(entry)

    @property
    def commit_index(self) -> int:
        """Index of the last entry committed."""
        return len(self.committed) + 1

    def term_at(self, index: int) -> int:
        """Return the term of a committed entry."""
        return self.committed[index - 2][2] if index > 1 else 0

    # --- what is there

    def faults(self, loaded: Loaded) -> Iterator[str]:
        """Yield what a directory that was loaded after a crash must not hold."""
        yield from self.read_faults
        if not self._identity_places(loaded):
            yield f"the identity is {loaded.identity}"
        if not is_founded(loaded):
            return
        places = self._places(loaded)
        for name, found, held in zip(
            ("vote", "snapshot", "journal"),
            places,
            (_vote(loaded), _place(loaded), (loaded.base, [one[1:] for one in loaded.entries])),
            strict=True,
        ):
            if not found:
                yield f"the {name} is neither what was durable nor what was written since: {held}"
        if loaded.snapshot is not None and loaded.snapshot[2] != state_at(loaded.snapshot[0]):
            yield f"the snapshot {loaded.snapshot[0]} holds another state"
        if all(places) and self._is_ordered and not self._is_some_first_writes(loaded):
            yield "a later write is there and an earlier one is not"
        yield from self._commit_faults(loaded)

    def reborn(self, loaded: Loaded, *, has_lost_power: bool) -> None:
        """Let the next process begin on what was loaded.

        Args:
            loaded: It had no faults.
            has_lost_power: What was loaded is durable; else it may still be lost.
        """
        found = [(self.identity, self._identity_places(loaded))]
        if is_founded(loaded):
            visible = (self.vote, self.snapshot, self.log)
            found += list(zip(visible, self._places(loaded), strict=True))
        else:
            # A snapshot gets its name behind the identity of a member, so there is none.
            self.snapshot.later.clear()
        for part, places in found:
            if has_lost_power:
                part.keep(places[-1])
                part.later.clear()
            else:
                del part.later[places[-1] :]
        for part in self.parts:
            part.later = [(0, value) for _, value in part.later]
        self._is_ordered = not any(part.later for part in self.parts)
        self._renewed_number = None

    # --- inside

    def _identity_places(self, loaded: Loaded) -> list[int]:
        """Return where among the possible values an identity is."""
        held = None if loaded.identity is None else pack_identity(loaded.identity)
        return [place for place, value in enumerate(self.identity.values()) if value == held]

    def _places(self, loaded: Loaded) -> tuple[list[int], list[int], list[int]]:
        """Return where among the possible values vote, snapshot and journal are."""
        vote, snapshot = _vote(loaded), _place(loaded)
        log = (loaded.base, loaded.entries)
        return (
            [place for place, value in enumerate(self.vote.values()) if value == vote],
            [place for place, value in enumerate(self.snapshot.values()) if value == snapshot],
            [
                place
                for place, value in enumerate(self.log.values())
                if value is not None and behind(as_log(value), snapshot) == log
            ],
        )

    def _is_some_first_writes(self, loaded: Loaded) -> bool:
        """Return whether the parts are as after some number of writes, all together."""
        identity = pack_identity(loaded.identity) if loaded.identity else None
        vote, snapshot, log = _vote(loaded), _place(loaded), (loaded.base, loaded.entries)
        for number in {0, *[number for part in self.parts for number, _ in part.later]}:
            image = self.log.value_after(number)
            if (
                self.identity.value_after(number) == identity
                and self.vote.value_after(number) == vote
                and self.snapshot.value_after(number) == snapshot
                and image is not None
                and behind(as_log(image), snapshot) == log
            ):
                return True
        return False

    def _commit_faults(self, loaded: Loaded) -> Iterator[str]:
        """Yield where what was loaded contradicts what was committed."""
        log, snapshot = (loaded.base, loaded.entries), _place(loaded)
        reach = self._reach(log, snapshot)
        if loaded.commit_index > reach:
            yield f"{loaded.commit_index} counts as committed, but only {reach} are right"
        if loaded.commit_index > max(self.commit_told, snapshot[0] if snapshot else 1):
            yield f"{loaded.commit_index} counts as committed, told was {self.commit_told}"
        if self.log.sure is not None:
            sure = self.snapshot.sure
            assert sure is None or isinstance(sure, tuple)
            promised = self._reach(as_log(self.log.sure), sure)
            if reach < promised:
                yield f"{promised} committed entries were durable, {reach} are there"

    def _reach(self, log: Log, snapshot: Place | None) -> int:
        """Return up to which index a directory holds what is committed."""
        (index, _), entries = log
        for entry in entries:
            if index >= self.commit_index or entry != self.committed[index - 1]:
                break
            index += 1
        return max(index, snapshot[0] if snapshot is not None else 1)


def as_log(value: Value) -> Log:
    """Return the value of a journal, which must have been written."""
    assert isinstance(value, tuple)
    return value


def behind(log: Log, snapshot: Place | None) -> Log | None:
    """Return what counts of a journal beside a snapshot; None if they can't stand together.

    Entries that the snapshot contradicts don't count. A journal that begins behind it has lost
    something.
    """
    base, entries = log
    if base[0] > (snapshot[0] if snapshot is not None else 1):
        return None
    if snapshot is None:
        return log
    places = {base, *[(index, term) for _, index, term in entries]}
    return log if snapshot in places else (snapshot, ())


def is_founded(loaded: Loaded) -> bool:
    """Return whether a directory belongs to a cluster; else only its identity is read."""
    return loaded.identity is not None and bool(loaded.identity.cluster_id)


def _vote(loaded: Loaded) -> Value:
    """Return what was loaded of the vote file."""
    return loaded.term, loaded.voted_for, dict(loaded.notes)


def _place(loaded: Loaded) -> Place | None:
    """Return which snapshot was loaded."""
    return None if loaded.snapshot is None else loaded.snapshot[:2]
