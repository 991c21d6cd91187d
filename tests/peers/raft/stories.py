"""A node to whose proposals anything may happen, and the truth beside it."""

from dataclasses import dataclass, field

from reachnode.peers.raft.messages import Propose
from reachnode.peers.raft.proposal import Leader
from reachnode.registry.codec import decode_batch, decode_envelope
from reachnode.registry.outcomes import Applied, Outcome, Refused
from tests.peers.raft.desks import DISK_FULL, EXPIRED, NO, Desk, envelope

STEPS = (
    *("submit", "submit", "submit", "fence", "foreign", "pump", "pump", "pump", "wait"),
    *("lead", "lead", "follow", "follow", "nobody", "reconnect", "mute"),
    *("apply", "apply", "overwrite", "cut", "skip", "hear", "hear", "hear", "reach"),
)
FATES = ("applied", "applied", "expired", "refused", "discarded", "lost", "elsewhere")
OUTCOMES: tuple[type[Applied] | Refused, ...] = (Applied, Applied, NO, EXPIRED)


@dataclass(slots=True)
class Story:
    """One run."""

    desk: Desk = field(default_factory=Desk)
    now: float = 0.0
    applied_index: int = 1
    names_count: int = 0
    foreign_count: int = 0
    attempts: dict[str, set[str]] = field(default_factory=dict)
    """By change: each attempt that may have been applied, or may still be."""
    at: dict[int, str] = field(default_factory=dict)
    """By index: the attempt that this node has in its log there."""
    _batches_seen: int = 0
    _said_seen: int = 0

    def play(self, step: str, number: int) -> None:
        """Let something happen, then look at what was told."""
        getattr(self, f"_{step}")(number)
        self._record()
        for name, fates in self.desk.fates.items():
            assert len(fates) <= 1
            if fates and isinstance(fates[0], Refused) and fates[0] is not NO:
                assert not self.attempts.get(name), f"{name} was refused, and may be applied"

    def end(self) -> None:
        """Let all time pass, and take back what is in the log."""
        self.now += 100.0
        self._pump()
        assert all(len(fates) == 1 for fates in self.desk.fates.values())
        self._nobody(0)
        self._pump()
        self.desk.proposals.cut(0)
        self.desk.proposals.reached(1 << 30)
        self._pump()
        answered = [answer.number for to, answer in self.desk.node.answers() if to == "n3"]
        assert sorted(answered) == list(range(1, self.foreign_count + 1))
        self.desk.check_at_rest()

    def _record(self) -> None:
        """Take note of what was appended and sent."""
        node = self.desk.node
        for batch in node.batches[self._batches_seen :]:
            self._batches_seen += 1
            attempt = f"batch {self._batches_seen}"
            self.at[node.end] = attempt
            for one in decode_batch(batch):
                self.attempts.setdefault(one.request_id, set()).add(attempt)
        for _, message in node.said[self._said_seen :]:
            self._said_seen += 1
            if isinstance(message, Propose) and message.envelope:
                name = decode_envelope(message.envelope).request_id
                self.attempts.setdefault(name, set()).add(f"sent {message.number}")

    def _forget(self, attempt: str) -> None:
        """Take note that an attempt certainly came to nothing, or was told."""
        for attempts in self.attempts.values():
            attempts.discard(attempt)

    # --- what the node does

    def _submit(self, number: int) -> None:
        self.names_count += 1
        self.desk.submit(f"q{self.names_count}", deadline=self.now + number, now=self.now)

    def _fence(self, number: int) -> None:
        self.names_count += 1
        name = f"f{self.names_count}"
        self.desk.submit(name, deadline=self.now + number, now=self.now, fence=True)

    def _foreign(self, number: int) -> None:
        self.foreign_count += 1
        data = envelope(f"x{self.foreign_count}") if number else b""
        self.desk.proposals.take("n3", 1, Propose(self.foreign_count, data))

    def _pump(self, _number: int = 0) -> None:
        self.desk.proposals.pump(self.now)

    def _wait(self, number: int) -> None:
        self.now += number / 4

    # --- who leads

    def _lead(self, _number: int) -> None:
        self.desk.node.is_leader, self.desk.node.leader = True, None
        self.desk.node.term += 1

    def _follow(self, number: int) -> None:
        member = "n2" if number % 2 else "n4"
        self.desk.node.is_leader = False
        self.desk.node.leader = Leader(member, self.desk.node.epochs.get(member, 1))

    def _nobody(self, _number: int) -> None:
        self.desk.node.is_leader, self.desk.node.leader = False, None

    def _reconnect(self, _number: int) -> None:
        self.desk.node.epochs["n2"] += 1

    def _mute(self, _number: int) -> None:
        self.desk.node.unreachable ^= {"n2"}

    # --- what becomes of the log

    def _apply(self, number: int) -> None:
        for index, found in list(self.desk.proposals.in_log.items()):
            outcomes: list[Outcome] = []
            for item in found.items:
                chosen = OUTCOMES[(number + len(outcomes)) % len(OUTCOMES)]
                if not item.is_fence:
                    outcomes.append(chosen if isinstance(chosen, Refused) else Applied(index))
            self._forget(self.at[index])
            self.desk.proposals.applied(index, found.term, outcomes)
            self._reach(index)

    def _overwrite(self, _number: int) -> None:
        for index, found in list(self.desk.proposals.in_log.items()):
            self._forget(self.at[index])
            self.desk.proposals.applied(index, found.term + 1, ())
            self._reach(index)

    def _cut(self, number: int) -> None:
        index = max(self.applied_index + 1, self.desk.node.end + number % 2)
        self.desk.proposals.cut(index)
        self.desk.node.end = min(self.desk.node.end, index - 1)

    def _skip(self, number: int) -> None:
        index = max(self.applied_index, self.desk.node.end - number % 2)
        self.desk.proposals.skipped_to(index)
        self._reach(index)

    def _reach(self, number: int) -> None:
        self.applied_index = max(self.applied_index, number)
        self.desk.node.end = max(self.desk.node.end, self.applied_index)
        self.desk.proposals.reached(self.applied_index)

    # --- what the leader says

    def _hear(self, number: int) -> None:
        sent = sorted(self.desk.proposals.sent)
        if not sent:
            return
        which = sent[number % len(sent)]
        fate = FATES[number % len(FATES)]
        if fate != "lost":
            self._forget(f"sent {which}")
        outcome: Outcome | None = None
        if fate in ("applied", "expired"):
            index = self.applied_index + number % 3
            outcome = Applied(index) if fate == "applied" else EXPIRED
            fate = "applied"
        elif fate == "refused":
            outcome = DISK_FULL
        self.desk.hear(fate, outcome, number=which, applied_index=self.applied_index)
