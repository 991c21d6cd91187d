"""What may not be said, or counted, before the disk says so.

Outgoing, until it is durable here: a request for votes and a vote (the term and the vote
must not be forgotten), and a follower's acknowledgement (the entries must not be). On a
leader, incoming: followers' acknowledgements of entries that the leader itself has not
durable yet, because the engine counts the leader as having whatever it appended.

Held by number of write, not by index: a replaced tail uses the same indexes again. What
is durable of an acknowledgement goes on at once, or a disk that stalls would starve the
leader's check for a quorum. At most one message of a kind is held per peer: a later one
says more.
"""

from collections.abc import Callable, Iterator

import msgspec

from reachnode.peers.raft.messages import Ack, RequestVote, Vote
from reachnode.peers.raft.safeguards import Safeguards


class HeldMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message waiting; `epoch` numbers the connection it belongs to.

    A struct, like the next one: both are made for every acknowledgement.
    """

    peer: str
    message: RequestVote | Vote | Ack
    epoch: int
    term: int
    number: int
    """Of the write that must be done; for an acknowledgement the term's write."""

    @property
    def index(self) -> int:
        """The index an acknowledgement speaks for; 0 for others."""
        return self.message.next_index - 1 if isinstance(self.message, Ack) else 0


class Durable(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far this node's disk is, at one moment."""

    done: int
    synced_index: int
    term: int
    is_leader: bool


class Held:
    """One node's waiting messages.

    Args:
        safeguards: Which rules are on.
        epoch: Returns the number of the connection to a peer, None when there is none.
    """

    def __init__(self, safeguards: Safeguards, epoch: Callable[[str], int | None]) -> None:
        self._rules = safeguards
        self._epoch = epoch
        self._outgoing: dict[tuple[str, type], HeldMessage] = {}
        self._incoming: dict[str, HeldMessage] = {}
        self.counters = {"held_votes": 0, "held_acks": 0, "held_counts": 0}
        self.counters |= {"held_clamped": 0, "held_dropped": 0}

    def out(self, held: HeldMessage, durable: Durable) -> RequestVote | Vote | Ack | None:
        """Return what may leave now of a message to a peer, and hold the rest."""
        if self._may_leave(held, durable):
            self._outgoing.pop((held.peer, type(held.message)), None)
            return held.message
        key = (held.peer, type(held.message))
        self._outgoing[key] = held
        if not isinstance(held.message, Ack):
            self.counters["held_votes"] += 1
            return None
        self.counters["held_acks"] += 1
        return self._clamped(held.message, durable, is_term_durable=held.number <= durable.done)

    def incoming(self, held: HeldMessage, durable: Durable) -> Ack | None:
        """Return what a leader may count now of an acknowledgement, and hold the rest."""
        message = held.message
        assert isinstance(message, Ack)
        if not self._rules.leader_waits_for_sync or held.index <= durable.synced_index:
            return message
        before = self._incoming.get(held.peer)
        if before is None or before.index <= held.index or before.term != held.term:
            self._incoming[held.peer] = held
        self.counters["held_counts"] += 1
        return self._clamped(message, durable, is_term_durable=True)

    def released(self, durable: Durable) -> Iterator[tuple[str, RequestVote | Vote | Ack]]:
        """Yield messages that may leave now that more is durable."""
        for key, held in list(self._outgoing.items()):
            if not self._may_leave(held, durable):
                continue
            del self._outgoing[key]
            if self._is_alive(held, durable, as_leader=False):
                yield held.peer, held.message

    def released_counts(self, durable: Durable) -> Iterator[tuple[str, Ack]]:
        """Yield acknowledgements that a leader may count now that more is durable."""
        for peer, held in list(self._incoming.items()):
            if held.index > durable.synced_index:
                continue
            del self._incoming[peer]
            assert isinstance(held.message, Ack)
            if self._is_alive(held, durable, as_leader=True):
                yield peer, held.message

    def cut(self, index: int) -> None:
        """Drop what was to be said of entries from `index` on: they are no more."""
        if not self._rules.held_die_with_tail:
            return
        for key, held in list(self._outgoing.items()):
            if isinstance(held.message, Ack) and held.index >= index:
                del self._outgoing[key]
                self.counters["held_dropped"] += 1

    def _may_leave(self, held: HeldMessage, durable: Durable) -> bool:
        """Return whether everything the message relies on is durable."""
        match held.message:
            case Vote():
                return not self._rules.vote_waits_for_sync or held.number <= durable.done
            case RequestVote():
                return not self._rules.candidacy_waits_for_sync or held.number <= durable.done
            case Ack():
                if not self._rules.ack_waits_for_sync:
                    return True
                return held.number <= durable.done and held.index <= durable.synced_index

    def _clamped(self, message: Ack, durable: Durable, *, is_term_durable: bool) -> Ack | None:
        """Return the part of an acknowledgement that is durable, None if there is none."""
        if not self._rules.ack_is_clamped or not is_term_durable or durable.synced_index < 1:
            return None
        self.counters["held_clamped"] += 1
        index = min(message.next_index - 1, durable.synced_index)
        return Ack(message.term, index + 1, message.reset, message.success)

    def _is_alive(self, held: HeldMessage, durable: Durable, *, as_leader: bool) -> bool:
        """Return whether the message still belongs to this term and connection."""
        alive = True
        if self._rules.held_die_with_term:
            alive = held.term == durable.term and (durable.is_leader or not as_leader)
        if self._rules.held_die_with_connection:
            alive = alive and self._epoch(held.peer) == held.epoch
        if not alive:
            self.counters["held_dropped"] += 1
        return alive
