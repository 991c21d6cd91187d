"""The judge sees what must not be, and is silent about what may."""

import pytest

from reachnode.model.agents import Instance
from reachnode.model.membership import Unknown
from reachnode.peers.raft.opening import NO_OP, REGULAR
from reachnode.registry.apply import apply_batch
from reachnode.registry.codec import encode_batch, encode_envelope
from reachnode.registry.commands import Envelope, Register
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import State, genesis
from sim.judge import Change, FencedRead, Judge

START = genesis("c" * 32, {"n1": "i" * 32}, requests_max=64)


def entry(*numbers: int) -> bytes:
    """Return an entry that registers an agent under each number."""
    envelopes = [
        Envelope(
            request_id=f"q{number}",
            since_index=0,
            command=Register(instance=Instance(agent_id="a1", agent="a1", name=f"v{number}")),
        )
        for number in numbers
    ]
    return REGULAR + encode_batch([encode_envelope(one) for one in envelopes])


def played(judge: Judge, *commands: bytes, members: tuple[str, ...] = ("n1", "n2")) -> State:
    """Let every member apply the commands, from index 2 on; return the state."""
    state = START
    for index, command in enumerate(commands, start=2):
        outcomes: tuple[Applied | Refused, ...] = ()
        if command[:1] == REGULAR:
            state, outcomes = apply_batch(state, index, command[1:])
        for member in members:
            judge.applied(member, index, command, outcomes)
    return state


def asked(judge: Judge, number: int, fate: Applied | Refused | Unknown) -> None:
    """Record a change that was asked for and answered."""
    change = Change(
        request_id=f"q{number}", client=number, key="a1", value=f"v{number}", invoked_at=number
    )
    judge.changes[change.request_id] = change
    judge.told(change, fate, number + 0.5)


def kinds(judge: Judge) -> list[str]:
    """Return the kinds of violations."""
    return [violation.partition(":")[0] for violation in judge.violations]


def test_a_run_as_it_should_be_is_not_faulted() -> None:
    """Everybody applies the same, everything acknowledged is there: nothing to say."""
    judge = Judge()
    judge.leads("n1", "i1", 1)
    state = played(judge, NO_OP, entry(1))
    asked(judge, 1, Applied(3))
    asked(judge, 2, Unknown("no answer"))
    asked(judge, 3, Refused("no_quorum", "nobody leads"))
    judge.conclude({"n1": (3, state), "n2": (3, state)}, START)
    assert judge.violations == []
    assert judge.fates == {"applied": 1, "unknown": 1, "no_quorum": 1}


def test_divergence_is_seen() -> None:
    """Two members that apply different entries at one index are found out at once."""
    judge = Judge()
    judge.applied("n1", 2, NO_OP, ())
    judge.applied("n2", 2, entry(1), (Applied(2),))
    assert kinds(judge) == ["divergence"]


def test_two_leaders_of_a_term_are_seen() -> None:
    """A term has one leader; the same one may say so twice."""
    judge = Judge()
    judge.leads("n1", "i1", 1)
    judge.leads("n1", "i1", 1)
    assert judge.violations == []
    judge.leads("n2", "i2", 1)
    assert kinds(judge) == ["two leaders"]


def test_loss_is_seen() -> None:
    """A change that was acknowledged and is in no log is lost."""
    judge = Judge()
    state = played(judge, NO_OP)
    asked(judge, 1, Applied(2))
    judge.conclude({"n1": (2, state)}, START)
    assert "acknowledged and lost" in kinds(judge)


def test_a_refusal_that_took_effect_is_seen() -> None:
    """What was refused on the way to the log must never come to be in it."""
    judge = Judge()
    state = played(judge, entry(1))
    asked(judge, 1, Refused("no_quorum", "nobody leads"))
    judge.conclude({"n1": (2, state)}, START)
    assert "refused and applied" in kinds(judge)


def test_a_second_effect_is_seen() -> None:
    """A request that is in the log twice may take effect once only."""
    judge = Judge()
    judge.applied("n1", 2, entry(1), (Applied(2),))
    judge.applied("n1", 3, entry(1), (Applied(2),))
    assert (judge.violations, judge.repeats_count) == ([], 1)
    judge.applied("n1", 4, entry(1), (Applied(4),))
    assert kinds(judge) == ["applied twice"]


def test_a_stale_read_is_seen() -> None:
    """A fenced read that was asked for after an acknowledgement shows it."""
    judge = Judge()
    state = played(judge, entry(1), entry(2))
    asked(judge, 1, Applied(2))
    asked(judge, 2, Applied(3))
    judge.reads.append(
        FencedRead(client=9, key="a1", invoked_at=5.0, returned_at=6.0, index=2, value="v1")
    )
    judge.conclude({"n1": (3, state)}, START)
    assert kinds(judge) == ["not linearizable"]


def test_members_that_differ_in_the_end_are_seen() -> None:
    """A state that is not what the log makes, an index behind, an entry nobody applied."""
    judge = Judge()
    played(judge, entry(1))
    judge.conclude({"n1": (2, START)}, START)
    assert kinds(judge) == ["divergence"]
    judge = Judge()
    judge.conclude({"n1": (2, START), "n2": (3, START)}, START)
    assert kinds(judge) == ["not equal"]
    judge = Judge()
    judge.conclude({"n1": (2, START)}, START)
    assert kinds(judge) == ["a gap"]


@pytest.mark.parametrize("second", [NO_OP, entry(5)])
def test_the_digest_is_of_the_log(second: bytes) -> None:
    """The same log has the same digest, another log another one."""
    first, other = Judge(), Judge()
    played(first, NO_OP, entry(1))
    played(other, NO_OP, second)
    assert first.log_digest() != other.log_digest()
    again = Judge()
    played(again, NO_OP, entry(1))
    assert again.log_digest() == first.log_digest()
