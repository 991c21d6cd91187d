"""What may not be said, or counted, before the disk says so."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.peers.raft.held import Durable, Held, HeldMessage
from reachnode.peers.raft.messages import Ack, RequestVote, Vote
from reachnode.peers.raft.safeguards import ALL_ON, Safeguards

NOTHING = Durable(done=0, synced_index=0, term=3, is_leader=False)


@dataclass(slots=True)
class Links:
    """The number of the connection to each peer."""

    epochs: dict[str, int] = field(default_factory=lambda: {"n2": 1, "n3": 1})

    def epoch(self, peer: str) -> int | None:
        return self.epochs.get(peer)


def held_by(rules: Safeguards = ALL_ON, links: Links | None = None) -> Held:
    """Return a node's waiting messages, none yet."""
    return Held(rules, (links or Links()).epoch)


def ack(index: int, term: int = 3) -> Ack:
    """Return an acknowledgement of everything up to an index."""
    return Ack(term, index + 1, reset=False, success=True)


def waiting(
    message: RequestVote | Vote | Ack, number: int, *, peer: str = "n2", epoch: int = 1
) -> HeldMessage:
    """Return a message of term 3 with the write it relies on."""
    return HeldMessage(peer=peer, message=message, epoch=epoch, term=3, number=number)


@pytest.mark.parametrize("message", [Vote(3), RequestVote(3, 9, 2)])
def test_a_vote_leaves_once_its_write_is_done(message: Vote | RequestVote) -> None:
    """Not before, whole, and once."""
    held = held_by()
    assert held.out(waiting(message, 5), NOTHING) is None
    assert list(held.released(replace(NOTHING, done=4))) == []
    assert list(held.released(replace(NOTHING, done=5))) == [("n2", message)]
    assert list(held.released(replace(NOTHING, done=9))) == []
    assert held.out(waiting(message, 5), replace(NOTHING, done=5)) == message
    assert held.counters["held_votes"] == 1


def test_an_acknowledgement_is_said_as_far_as_it_is_durable() -> None:
    """The durable part leaves at once, the whole when the rest is."""
    held = held_by()
    durable = Durable(done=9, synced_index=4, term=3, is_leader=False)
    assert held.out(waiting(ack(7), 2), durable) == ack(4)
    assert list(held.released(replace(durable, synced_index=6))) == []
    assert list(held.released(replace(durable, synced_index=7))) == [("n2", ack(7))]
    assert (held.counters["held_acks"], held.counters["held_clamped"]) == (1, 1)


def test_no_part_of_an_acknowledgement_leaves_before_its_term_is_durable() -> None:
    """Nor while not even the base of the log is."""
    held = held_by()
    durable = Durable(done=9, synced_index=4, term=3, is_leader=False)
    assert held.out(waiting(ack(4), 10), durable) is None
    assert list(held.released(durable)) == []
    assert list(held.released(replace(durable, done=10))) == [("n2", ack(4))]
    assert held.out(waiting(ack(4), 2), replace(durable, synced_index=0)) is None


def test_the_durable_part_may_be_the_base_alone() -> None:
    """As soon as the base and the term are durable, so much is said."""
    held = held_by()
    durable = Durable(done=2, synced_index=1, term=3, is_leader=False)
    assert held.out(waiting(ack(7), 2), durable) == ack(1)


def test_a_later_message_takes_the_place_of_an_earlier_one() -> None:
    """It says more; what leaves at once ends what waited."""
    held = held_by()
    durable = Durable(done=9, synced_index=4, term=3, is_leader=False)
    held.out(waiting(ack(7), 2), durable)
    held.out(waiting(ack(8), 2), durable)
    held.out(waiting(ack(8), 2, peer="n3"), durable)
    done = replace(durable, synced_index=8)
    assert list(held.released(done)) == [("n2", ack(8)), ("n3", ack(8))]
    held.out(waiting(ack(9), 2), done)
    assert held.out(waiting(ack(8), 2), done) == ack(8)
    assert list(held.released(replace(done, synced_index=9))) == []


def test_what_was_held_dies_with_its_term_and_its_connection() -> None:
    """A new term or connection has its own messages."""
    links = Links()
    held = held_by(links=links)
    for peer in ("n2", "n3"):
        held.out(waiting(Vote(3), 5, peer=peer), NOTHING)
    links.epochs["n2"] = 2
    done = replace(NOTHING, done=5)
    assert list(held.released(done)) == [("n3", Vote(3))]
    held.out(waiting(Vote(3), 6, peer="n3"), done)
    assert list(held.released(replace(done, done=6, term=4))) == []
    held.out(waiting(Vote(3), 7, peer="n3"), done)
    del links.epochs["n3"]
    assert list(held.released(replace(done, done=7))) == []
    assert held.counters["held_dropped"] == 3


def test_acknowledgements_of_a_tail_that_was_cut_die_with_it() -> None:
    """Those below the cut, and votes, still leave."""
    held = held_by()
    held.out(waiting(ack(7), 2), NOTHING)
    held.out(waiting(ack(6), 2, peer="n3"), NOTHING)
    held.out(waiting(Vote(3), 2), NOTHING)
    held.cut(7)
    done = Durable(done=9, synced_index=9, term=3, is_leader=False)
    assert dict(held.released(done)) == {"n3": ack(6), "n2": Vote(3)}
    assert held.counters["held_dropped"] == 1


def test_a_leader_counts_no_more_than_it_has_itself() -> None:
    """The part it has it counts at once; the whole when it has it, and only while it leads."""
    held = held_by()
    leading = Durable(done=0, synced_index=4, term=3, is_leader=True)
    assert held.incoming(waiting(ack(4), 0), leading) == ack(4)
    assert held.incoming(waiting(ack(7), 0), leading) == ack(4)
    assert held.incoming(waiting(ack(8), 0, peer="n3"), leading) == ack(4)
    assert list(held.released_counts(replace(leading, synced_index=6))) == []
    assert list(held.released_counts(replace(leading, synced_index=7))) == [("n2", ack(7))]
    deposed = replace(leading, synced_index=8, is_leader=False)
    assert list(held.released_counts(deposed)) == []
    assert held.counters["held_counts"] == 2


def test_the_same_acknowledgement_over_a_new_connection_takes_the_place_of_the_old() -> None:
    """What was held for the connection that is gone would be dropped with it."""
    links = Links()
    held = held_by(links=links)
    leading = Durable(done=0, synced_index=1, term=3, is_leader=True)
    held.incoming(waiting(ack(7), 0), leading)
    links.epochs["n2"] = 2
    held.incoming(waiting(ack(7), 0, epoch=2), leading)
    assert list(held.released_counts(replace(leading, synced_index=7))) == [("n2", ack(7))]


def test_a_lesser_acknowledgement_does_not_displace_a_greater_one() -> None:
    """Of the same term; one of an earlier term is no competitor."""
    held = held_by()
    leading = Durable(done=0, synced_index=1, term=3, is_leader=True)
    for index in (7, 5):
        held.incoming(waiting(ack(index), 0), leading)
    assert list(held.released_counts(replace(leading, synced_index=9))) == [("n2", ack(7))]
    held.incoming(replace(waiting(ack(9, 2), 0), term=2), leading)
    held.incoming(waiting(ack(5), 0), leading)
    assert list(held.released_counts(replace(leading, synced_index=9))) == [("n2", ack(5))]


# --- each rule can be turned off for the simulator, which must notice


def test_each_rule_has_its_switch() -> None:
    """Off, the message leaves, counts or lives on at once."""
    vote, candidacy = waiting(Vote(3), 5), waiting(RequestVote(3, 9, 2), 5)
    off = Safeguards(
        vote_waits_for_sync=False,
        candidacy_waits_for_sync=False,
        ack_waits_for_sync=False,
        leader_waits_for_sync=False,
    )
    held = held_by(off)
    for message in (vote, candidacy, waiting(ack(7), 5)):
        assert held.out(message, NOTHING) == message.message
    assert held.incoming(waiting(ack(7), 0), NOTHING) == ack(7)
    unclamped = held_by(Safeguards(ack_is_clamped=False))
    assert unclamped.out(waiting(ack(7), 0), replace(NOTHING, synced_index=4)) is None


def test_what_is_held_can_be_made_immortal() -> None:
    """The three ways to die have a switch each."""
    links = Links()
    rules = Safeguards(
        held_die_with_term=False, held_die_with_connection=False, held_die_with_tail=False
    )
    held = held_by(rules, links)
    held.out(waiting(ack(7), 5), NOTHING)
    held.cut(1)
    links.epochs.clear()
    later = Durable(done=9, synced_index=9, term=8, is_leader=False)
    assert list(held.released(later)) == [("n2", ack(7))]


# --- in any order


STEPS = ("vote", "candidacy", "ack", "ack", "write", "done", "cut", "term", "reconnect")


@dataclass(slots=True)
class Node:
    """A node that holds, with the truth beside it: which write each entry came with."""

    links: Links = field(default_factory=Links)
    held: Held = field(init=False)
    newest: int = 0
    done: int = 0
    term: int = 3
    log: list[int] = field(default_factory=list)
    """The number of the write of each entry, from index 1."""
    votes: list[tuple[HeldMessage, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.held = held_by(links=self.links)

    def durable(self) -> Durable:
        synced = 0
        while synced < len(self.log) and self.log[synced] <= self.done:
            synced += 1
        return Durable(done=self.done, synced_index=synced, term=self.term, is_leader=False)

    def step(self, kind: str, number: int, peer: str) -> None:
        """Do something; whatever leaves is checked."""
        match kind:
            case "write":
                self.newest += 1
                self.log.append(self.newest)
            case "done":
                self.done = min(self.newest, self.done + number)
                for to, message in self.held.released(self.durable()):
                    self.check(to, message)
            case "cut" if self.log:
                index = 1 + number % len(self.log)
                del self.log[index - 1 :]
                self.newest += 1
                self.held.cut(index)
            case "term":
                self.term += 1
                self.newest += 1
            case "reconnect":
                self.links.epochs[peer] += 1
            case "vote" | "candidacy" | "ack":
                self.say(kind, number, peer)

    def say(self, kind: str, number: int, peer: str) -> None:
        """Hold a message, or send it at once."""
        message: Vote | RequestVote | Ack = Vote(self.term)
        if kind == "candidacy":
            message = RequestVote(self.term, self.newest, 0)
        elif kind == "ack":
            message = Ack(self.term, 1 + number % (len(self.log) + 1), reset=False, success=True)
        held = HeldMessage(
            peer=peer,
            message=message,
            epoch=self.links.epochs[peer],
            term=self.term,
            number=self.newest,
        )
        if not isinstance(message, Ack):
            self.votes.append((held, peer))
        leaving = self.held.out(held, self.durable())
        if leaving is not None:
            self.check(peer, leaving)

    def check(self, peer: str, message: Vote | RequestVote | Ack) -> None:
        """What leaves is of this term, and all that it relies on is durable."""
        assert message.term == self.term
        if isinstance(message, Ack):
            said = self.log[: message.next_index - 1]
            assert len(said) == message.next_index - 1, "these entries are no more"
            assert all(number <= self.done for number in said)
            return
        mine = [one for one, to in self.votes if to == peer and one.message == message]
        assert any(one.number <= self.done for one in mine)
        assert any(one.epoch == self.links.epochs[peer] for one in mine)


@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.sampled_from(["n2", "n3"])),
        max_size=50,
    )
)
def test_nothing_leaves_before_its_write_is_done(steps: list[tuple[str, int, str]]) -> None:
    """Whatever is said, written, cut and made durable, and in whichever order."""
    node = Node()
    for step in steps:
        node.step(*step)
