"""Changes on their way into the log, each of which ends in one of three ways.

    queue --this node leads--> log --applied--> Applied or Refused by the state machine
      |  ^                      |
      |  +-----overwritten------+
      |  +---"elsewhere", or lost and so perhaps done: cut from a log, leader gone---+
      +--another node leads--> sent --"applied"--> once applied here, or at the deadline
      |
      +--nobody leads for a while--> Refused no_quorum, unless it may have happened
      +--deadline--> Unknown if it may have happened, else Refused

What may have happened is tried again under the same request id, which the state machine
applies once; so an unknown outcome is what is left when the deadline passes. A read fence
is a proposal without a change. One batch is in the log at a time and carries all that
queued meanwhile.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Literal

from reachnode.errors import UnknownCommand
from reachnode.model.membership import Unknown
from reachnode.peers.raft.messages import Propose, Proposed
from reachnode.peers.raft.opening import COMMAND_BYTES_MAX
from reachnode.peers.raft.proposal import Fate, Foreign, Host, Leader, Proposal
from reachnode.registry.codec import (
    decode_envelope,
    decode_outcome,
    encode_batch,
    encode_outcome,
)
from reachnode.registry.outcomes import Applied, Outcome, Refused

OPEN_MAX = 10_000
"""Changes of this node that may be under way."""
FOREIGN_MAX = 10_000
"""Changes of other nodes that may wait here for the log."""
DECLINED_SECONDS = 0.1
"""How long nothing is sent to a node that said it doesn't lead, unless another one does."""
EXPIRED = "request_expired"
BATCH_MAX = 512
BATCH_BYTES_MAX = COMMAND_BYTES_MAX - 4096


@dataclass(slots=True)
class _InLog:
    term: int
    items: list[Proposal | Foreign]


@dataclass(slots=True, kw_only=True)
class Proposals:
    """The changes under way at one node.

    Args:
        host: The node.
        leaderless_seconds: How long a change waits for a leader.
    """

    host: Host
    leaderless_seconds: float
    queue: deque[Proposal | Foreign] = field(default_factory=deque)
    in_log: dict[int, _InLog] = field(default_factory=dict)
    sent: dict[int, tuple[Proposal, Leader]] = field(default_factory=dict)
    open_count: int = 0
    foreign_count: int = 0
    retried_count: int = 0
    rescued_count: int = 0
    """Changes that may have happened, and whose outcome a repeat has told."""
    _number: int = 0
    _declined: Leader | None = None
    """Who said lately that it doesn't lead, though this node knows of no other."""
    _declined_until: float | None = None
    _deadlines: list[tuple[float, int, Proposal]] = field(default_factory=list)
    _waiting: list[tuple[int, int, Proposal, Applied | Refused]] = field(default_factory=list)

    # --- coming in

    def submit(self, proposal: Proposal) -> None:
        """Take a change of this node."""
        refusal = self.host.refusal()
        if refusal is None and self.open_count >= OPEN_MAX:
            refusal = Refused("busy", f"{OPEN_MAX} changes are under way at this node", None)
        if refusal is None and proposal.weight > BATCH_BYTES_MAX:
            why = f"a change has at most {BATCH_BYTES_MAX} bytes, this has {proposal.weight}"
            refusal = Refused("payload_too_large", why, None)
        if refusal is not None:
            proposal.place = "closed"
            proposal.resolve(refusal)
            return
        self.open_count += 1
        self._number += 1
        heappush(self._deadlines, (proposal.deadline, self._number, proposal))
        self.queue.append(proposal)

    def take(self, peer: str, epoch: int, message: Propose) -> None:
        """Take a change that another node sent here."""
        refusal = self.host.refusal()
        if refusal is None and self.foreign_count >= FOREIGN_MAX:
            refusal = Refused("busy", f"{FOREIGN_MAX} changes wait at the leader", None)
        if refusal is None and len(message.envelope) > BATCH_BYTES_MAX:
            refusal = Refused("payload_too_large", "the change is too large for the log", None)
        if refusal is None and not is_readable(message.envelope):
            refusal = Refused("invalid_request", "the leader does not know this command", None)
        if not self.host.is_leader:
            self._answer_fate(peer, epoch, message.number, "elsewhere")
        elif refusal is not None:
            outcome = encode_outcome(refusal)
            self._answer(peer, epoch, Proposed(message.number, "refused", 0, outcome))
        else:
            self.foreign_count += 1
            foreign = Foreign(
                peer=peer, epoch=epoch, number=message.number, envelope=message.envelope
            )
            self.queue.append(foreign)

    def hear(self, message: Proposed, *, applied_index: int) -> None:
        """Take what the leader says of a change that was sent to it.

        Raises:
            ValueError: Its outcome can't be read; nothing is changed.
        """
        is_told = message.fate in ("applied", "refused")
        outcome = decode_outcome(message.outcome) if is_told else None
        found = self.sent.pop(message.number, None)
        if found is None or found[0].place != "sent":
            return
        proposal = found[0]
        match message.fate:
            case "applied":
                assert outcome is not None
                self._applied_at(proposal, message.index, outcome, applied_index)
            case "refused" if not proposal.may_have_happened:
                assert outcome is not None
                self._close(proposal, outcome)
            case "refused":
                self._close(proposal, Unknown("an attempt was lost, and another one refused"))
            case "lost":
                proposal.may_have_happened = True
                self._again(proposal)
            case "elsewhere":
                self._declined, self._declined_until = found[1], None
                self._again(proposal)
            case "discarded":
                self._again(proposal)

    # --- going on

    def pump(self, now: float) -> None:
        """Move changes on: into the log, to the leader, or out of time."""
        self._expire(now)
        if not self.queue and not self.sent:
            return
        leader = None if self.host.is_leader else self.host.reachable_leader()
        self._recall(leader)
        if self.host.is_leader:
            if self.queue and not self.in_log and self.host.takes_entries:
                self._append_batch()
        else:
            self._send_queue(now, leader)

    def next_at(self) -> float | None:
        """Return when something runs out of time, None when nothing is under way."""
        while self._deadlines and self._deadlines[0][2].place == "closed":
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def applied(self, index: int, term: int, outcomes: Sequence[Outcome]) -> None:
        """Resolve what an applied entry carried, or what it has overwritten."""
        found = self.in_log.pop(index, None)
        if found is None:
            return
        if found.term != term:
            self._discard(found)
            return
        remaining = iter(outcomes)
        for item in found.items:
            outcome: Outcome = Applied(index) if item.is_fence else next(remaining)
            if isinstance(item, Foreign):
                self.foreign_count -= 1
                fate = Proposed(item.number, "applied", index, encode_outcome(outcome))
                self._answer(item.peer, item.epoch, fate)
            else:
                self._conclude(item, index, outcome)

    def reached(self, applied_index: int) -> None:
        """Resolve what the leader has applied, now that this node has, too."""
        while self._waiting and self._waiting[0][0] <= applied_index:
            index, _, proposal, outcome = heappop(self._waiting)
            if proposal.place != "closed":
                self._conclude(proposal, index, outcome)

    def skipped_to(self, index: int) -> None:
        """Take note that entries up to `index` came as a snapshot, their outcomes untold."""
        self._lose([place for place in self.in_log if place <= index])

    def cut(self, index: int) -> None:
        """Take note that this node's log was cut from `index` on.

        The entries may still live in another node's log, which may yet be elected with
        them: only another entry *applied* in their place would rule that out.
        """
        self._lose([place for place in self.in_log if place >= index])

    # --- inside

    def _lose(self, indexes: Sequence[int]) -> None:
        """Try again what was in the log at these places, and may have happened."""
        for index in indexes:
            for item in self.in_log.pop(index).items:
                if isinstance(item, Foreign):
                    self.foreign_count -= 1
                    self._answer_fate(item.peer, item.epoch, item.number, "lost")
                else:
                    item.may_have_happened = True
                    self._again(item)

    def _append_batch(self) -> None:
        """Append what waits as one entry."""
        items: list[Proposal | Foreign] = []
        size = 0
        while self.queue and len(items) < BATCH_MAX:
            item = self.queue[0]
            if size + item.weight > BATCH_BYTES_MAX and items:
                break
            self.queue.popleft()
            if isinstance(item, Proposal):
                if item.place == "closed":
                    continue
                item.place = "log"
            items.append(item)
            size += item.weight
        if items:
            batch = encode_batch([item.envelope for item in items if not item.is_fence])
            index, term = self.host.append(batch)
            self.in_log[index] = _InLog(term, items)

    def _send_queue(self, now: float, leader: Leader | None) -> None:
        """Send what waits to the leader; without one, refuse what has waited long enough."""
        for _ in range(len(self.queue)):
            item = self.queue.popleft()
            if isinstance(item, Foreign):
                self.foreign_count -= 1
                self._answer_fate(item.peer, item.epoch, item.number, "elsewhere")
            elif item.place == "closed":
                continue
            elif leader is not None and self._has_declined(leader, now):
                self.queue.append(item)
            elif leader is not None:
                self._send(item, leader)
            elif now - item.submitted_at < self.leaderless_seconds or item.may_have_happened:
                self.queue.append(item)
            else:
                self._close(item, Refused("no_quorum", NO_LEADER, None))

    def _has_declined(self, leader: Leader, now: float) -> bool:
        """Return whether a leader would only send back what is sent to it."""
        if leader != self._declined:
            return False
        if self._declined_until is None:
            self._declined_until = now + DECLINED_SECONDS
        return now < self._declined_until

    def _send(self, proposal: Proposal, leader: Leader) -> None:
        """Send one change to the leader."""
        self._number += 1
        if not self.host.send(leader.member, Propose(self._number, proposal.envelope)):
            self.queue.append(proposal)
            return
        proposal.place = "sent"
        self.sent[self._number] = (proposal, leader)

    def _recall(self, leader: Leader | None) -> None:
        """Take back what was sent to somebody who no longer leads, or over a lost connection."""
        if not self.sent:
            return
        for number, (proposal, to) in list(self.sent.items()):
            if proposal.place != "sent":
                del self.sent[number]
            elif to != leader:
                del self.sent[number]
                proposal.may_have_happened = True
                self._again(proposal)

    def _again(self, proposal: Proposal) -> None:
        """Queue a change once more."""
        if proposal.place != "closed":
            proposal.place = "queue"
            self.retried_count += 1
            self.queue.append(proposal)

    def _discard(self, found: _InLog) -> None:
        """Queue again, or tell, what was overwritten in the log: it never happened."""
        for item in found.items:
            if isinstance(item, Foreign):
                self.foreign_count -= 1
                self._answer_fate(item.peer, item.epoch, item.number, "discarded")
            else:
                self._again(item)

    def _applied_at(
        self, proposal: Proposal, index: int, outcome: Outcome, applied_index: int
    ) -> None:
        """Resolve a change that the leader applied, once this node shows it as well."""
        if index <= applied_index:
            self._conclude(proposal, index, outcome)
            return
        proposal.place = "applied"
        self._number += 1
        heappush(self._waiting, (index, self._number, proposal, outcome))

    def _conclude(self, proposal: Proposal, index: int, outcome: Outcome) -> None:
        """Tell the proposer what the state machine said.

        A node that was behind chose its request id "before" many others, by its own index,
        and is told that the window has passed. That proves only that no earlier attempt can
        be told from a repeat; where there was none, it is tried again from here.
        """
        if not (isinstance(outcome, Refused) and outcome.code == EXPIRED):
            self.rescued_count += proposal.may_have_happened
            self._close(proposal, outcome)
        elif proposal.may_have_happened or proposal.renew is None:
            self._close(proposal, Unknown("an earlier attempt can no longer be told from this"))
        else:
            proposal.envelope = proposal.renew(index)
            self._again(proposal)

    def _expire(self, now: float) -> None:
        """End what is out of time."""
        if len(self._deadlines) > 2 * OPEN_MAX:
            self._deadlines = [item for item in self._deadlines if item[2].place != "closed"]
            heapify(self._deadlines)
        if len(self._waiting) > 2 * OPEN_MAX:
            self._waiting = [item for item in self._waiting if item[2].place != "closed"]
            heapify(self._waiting)
        while self._deadlines and self._deadlines[0][0] <= now:
            proposal = heappop(self._deadlines)[2]
            if proposal.place == "closed":
                continue
            self._close(proposal, self._fate_at_deadline(proposal))

    def _fate_at_deadline(self, proposal: Proposal) -> Fate:
        """Return what is known of a change when its time is up."""
        if proposal.is_fence:
            # Perhaps confirmed by the leader, but this node's own state is not there yet.
            return Refused("no_quorum", "no majority confirmed the read in time", None)
        if proposal.place == "applied":
            index, _, _, outcome = next(one for one in self._waiting if one[2] is proposal)
            is_expired = isinstance(outcome, Refused) and outcome.code == EXPIRED
            if not is_expired:
                return outcome
            if not proposal.may_have_happened:
                why = f"this node did not catch up to index {index} in time; nothing was changed"
                return Refused("deadline_exceeded", why)
        if proposal.place in ("log", "sent") or proposal.may_have_happened:
            return Unknown("it was proposed, and no majority confirmed or refused it in time")
        if self.host.is_leader:
            return Refused("deadline_exceeded", "the log did not take it in time", None)
        return Refused("no_quorum", NO_LEADER, None)

    def _close(self, proposal: Proposal, fate: Fate) -> None:
        """Tell the proposer, once."""
        if proposal.place == "closed":
            return
        proposal.place = "closed"
        self.open_count -= 1
        proposal.resolve(fate)

    def _answer_fate(
        self, peer: str, epoch: int, number: int, fate: Literal["elsewhere", "discarded", "lost"]
    ) -> None:
        """Tell another node that its change was not applied here."""
        self._answer(peer, epoch, Proposed(number, fate, 0, b""))

    def _answer(self, peer: str, epoch: int, message: Proposed) -> None:
        """Tell another node, unless its connection is no longer the same."""
        if self.host.epoch(peer) == epoch:
            self.host.send(peer, message)


def is_readable(envelope: bytes) -> bool:
    """Return whether this node knows the command; one it doesn't must not enter its log."""
    try:
        return not envelope or decode_envelope(envelope) is not None
    except UnknownCommand:
        return False


NO_LEADER = "no majority of the voters is connected: this attempt changed nothing; try again"
