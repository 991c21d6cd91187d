"""What must hold in every run, watched from outside the nodes.

One order: every node applies the same entry at an index. One leader per term. What was
acknowledged is in the log for ever, and took effect once. What was refused never is.
A fenced read is at least as new as whatever was acknowledged before it was asked for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from reachnode.model.membership import Unknown
from reachnode.peers.raft.machine import without_requests
from reachnode.registry.apply import apply_batch
from reachnode.registry.codec import decode_batch
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.snapshot import digest_of, dump
from reachnode.registry.state import State
from sim.linear import Entry, Operation, witness

VIOLATIONS_MAX = 20
PATH_CODES = frozenset(
    {"no_quorum", "busy", "disk_full", "deadline_exceeded", "payload_too_large", "invalid_request"}
)
"""Refusals given on the way to the log: the change must never be in it."""


@dataclass(slots=True, kw_only=True)
class Change:
    """A change a client asked for, and what it was told."""

    request_id: str
    client: int
    key: str
    value: str
    invoked_at: float
    returned_at: float | None = None
    fate: Applied | Refused | Unknown | None = None


@dataclass(slots=True, kw_only=True)
class FencedRead:
    """A read a client fenced: the value of a key in the state at an index."""

    client: int
    key: str
    invoked_at: float
    returned_at: float
    index: int
    value: str | None


@dataclass(slots=True)
class Judge:
    """The record of one run."""

    violations: list[str] = field(default_factory=list)
    log: dict[int, bytes] = field(default_factory=dict)
    """Command applied at each index, by whoever applied it first."""
    leaders: dict[int, set[tuple[str, str]]] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)
    reads: list[FencedRead] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    effects: dict[str, int] = field(default_factory=dict)
    """Request id to the index at which it took effect."""
    repeats_count: int = 0
    """Requests in the log that had taken effect before, and were answered alike."""
    requests_are_remembered: bool = True
    """Whether the nodes have the window of requests; without it a replay must not, either."""

    def violated(self, kind: str, what: str) -> None:
        """Record a violation."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(f"{kind}: {what}")

    def leads(self, member: str, incarnation: str, term: int) -> None:
        """Record a leader: at most one disk leads in a term."""
        leaders = self.leaders.setdefault(term, set())
        leaders.add((member, incarnation))
        if len(leaders) > 1:
            who = sorted(name for name, _ in leaders)
            self.violated("two leaders", f"in term {term}: {who}")

    def applied(self, member: str, index: int, command: bytes, outcomes: Sequence[Outcome]) -> None:
        """Record an applied entry: the same everywhere, each request effective once."""
        known = self.log.setdefault(index, command)
        if known != command:
            self.violated("divergence", f"{member} applied another entry at {index}")
            return
        if command[:1] != b"\x00":
            return
        for envelope, outcome in zip(decode_batch(command[1:]), outcomes, strict=True):
            if not isinstance(outcome, Applied):
                continue
            if outcome.index != index:
                self.repeats_count += 1
            first = self.effects.setdefault(envelope.request_id, outcome.index)
            if first != outcome.index:
                what = f"{envelope.request_id} at {first} and {outcome.index}"
                self.violated("applied twice", what)

    def told(self, change: Change, fate: Applied | Refused | Unknown, now: float) -> None:
        """Record what a client was told."""
        if change.fate is not None:
            self.violated("told twice", change.request_id)
        change.fate = fate
        change.returned_at = now
        match fate:
            case Applied():
                self.fates["applied"] += 1
            case Refused(code=code):
                self.fates[code] += 1
            case Unknown():
                self.fates["unknown"] += 1

    def conclude(self, states: dict[str, tuple[int, State]], genesis: State) -> None:
        """Judge the whole run, once every node has everything.

        Args:
            states: Applied index and state of each node.
            genesis: The state before the first entry.
        """
        self._judge_fates()
        self._judge_states(states, genesis)
        for fault in witness(self.operations(), self._entries()):
            self.violated("not linearizable", fault)

    def _judge_fates(self) -> None:
        """Compare what clients were told with what is in the log."""
        for request_id, change in self.changes.items():
            effect = self.effects.get(request_id)
            match change.fate:
                case Applied(index=index) if effect != index:
                    what = f"{request_id} acknowledged at {index}, took effect at {effect}"
                    self.violated("acknowledged and lost", what)
                case Refused(code=code) if code in PATH_CODES and effect is not None:
                    self.violated("refused and applied", f"{request_id} ({code}) at {effect}")
                case _:
                    continue

    def _judge_states(self, states: dict[str, tuple[int, State]], genesis: State) -> None:
        """Compare every node's state with a replay of the log."""
        indexes = {index for index, _ in states.values()}
        if len(indexes) != 1:
            self.violated(
                "not equal", f"applied { {member: index for member, (index, _) in states.items()} }"
            )
            return
        state = genesis
        for index in range(2, max(indexes) + 1):
            command = self.log.get(index)
            if command is None:
                self.violated("a gap", f"nobody applied {index}")
                return
            if command[:1] == b"\x00":
                state, _ = apply_batch(state, index, command[1:])
                state = state if self.requests_are_remembered else without_requests(state)
        expected = digest_of(dump(state))
        for member, (_, held) in sorted(states.items()):
            if digest_of(dump(held)) != expected:
                self.violated("divergence", f"{member}'s state is not what the log makes")

    def _entries(self) -> list[Entry]:
        """Return the changes in the log, as the linearizability check reads them."""
        effects = sorted(self.effects.items(), key=lambda item: item[1])
        entries = []
        for request_id, index in effects:
            change = self.changes.get(request_id)
            if change is not None:
                entries.append(
                    Entry(index=index, kind="write", key=change.key, argument=change.value)
                )
        return entries

    def log_digest(self) -> str:
        """Return a digest of the log, 32 hexadecimal digits."""
        digest = blake2b(digest_size=16)
        for index, command in sorted(self.log.items()):
            digest.update(b"%d %d " % (index, len(command)) + command)
        return digest.hexdigest()

    def operations(self) -> list[Operation]:
        """Return what clients did and saw: applied and unknown changes, and fenced reads."""
        done = []
        for change in self.changes.values():
            if isinstance(change.fate, Refused):
                continue
            applied = isinstance(change.fate, Applied)
            done.append(
                Operation(
                    client=str(change.client),
                    kind="write",
                    key=change.key,
                    argument=change.value,
                    invoked_at=change.invoked_at,
                    returned_at=change.returned_at if applied else None,
                    index=change.fate.index if isinstance(change.fate, Applied) else None,
                )
            )
        done.extend(
            Operation(
                client=str(read.client),
                kind="read",
                key=read.key,
                result=read.value,
                invoked_at=read.invoked_at,
                returned_at=read.returned_at,
                index=read.index,
            )
            for read in self.reads
        )
        return done
