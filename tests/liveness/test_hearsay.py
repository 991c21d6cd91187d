"""What other nodes say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness import hearsay as room
from reachnode.liveness.hearsay import SILENT_SECONDS, Hearsay, Sight, Tally
from reachnode.model.liveness import Delta, Report
from tests.liveness.clusters import homes, three
from tests.liveness.crowds import report

NODES = ("n2", "n3")
AGENT_IDS = ("a1", "a2", "a3")


def said(node: str, boot: int, sequence: int, agent_id: str) -> Report:
    """Return the one report that a node gave under a number."""
    number = boot * 100 + sequence
    return Report(
        agent_id=agent_id,
        incarnation=1,
        sequence=sequence,
        beat=number % 3,
        is_suspect=number % 2 == 0,
        fault=f"{node} {number} {agent_id}",
    )


@st.composite
def tellings(draw: st.DrawFn) -> Delta:
    """Return a delta of one of two nodes in one of three lives, in any order."""
    node = draw(st.sampled_from(NODES))
    boot = draw(st.integers(1, 3))
    sequences = draw(st.sets(st.integers(1, 9), max_size=4))
    # A number names one instance, as it does where it is given.
    reports = tuple(said(node, boot, one, AGENT_IDS[one % 3]) for one in sorted(sequences))
    return Delta(node=node, boot=boot, sequence=max(sequences, default=0), reports=reports)


def told(deltas: list[Delta]) -> Hearsay:
    """Return what is known after some deltas, all at one moment."""
    hearsay = Hearsay()
    for delta in deltas:
        hearsay.take(delta, now=5.0)
    return hearsay


def known(hearsay: Hearsay) -> tuple[object, ...]:
    """Return everything that can be asked of it."""
    return (
        [hearsay.about(agent_id) for agent_id in AGENT_IDS],
        [(hearsay.heard_up_to(node), hearsay.tally(node)) for node in NODES],
        [sorted(hearsay.of(node)) for node in NODES],
        hearsay.live,
        len(hearsay),
    )


@given(st.lists(tellings(), max_size=8), st.data())
def test_order_and_repetition_don_t_matter(deltas: list[Delta], data: st.DataObject) -> None:
    """However deltas are ordered, repeated or cut in two, the same is known in the end."""
    shuffled = data.draw(st.permutations(deltas))
    repeated = shuffled + data.draw(st.lists(st.sampled_from(deltas or [TELL]), max_size=3))
    if not deltas:
        repeated = []
    halves = [
        Delta(node=one.node, boot=one.boot, sequence=one.sequence, reports=part)
        for one in repeated
        for part in (one.reports[1:], one.reports[:1])
    ]
    assert known(told(repeated)) == known(told(deltas))
    assert known(told(halves)) == known(told(deltas))


@given(st.lists(tellings(), max_size=8))
def test_the_tally_is_a_count(deltas: list[Delta]) -> None:
    """Leases and suspects of a node are those it says it holds."""
    hearsay = told(deltas)
    for node in NODES:
        sights = [one for name in AGENT_IDS for one in hearsay.about(name) if one.node == node]
        held = [one for one in sights if one.beat]
        assert hearsay.tally(node) == Tally(len(held), sum(one.is_suspect for one in held))
    for agent_id in AGENT_IDS:
        hearsay.forget(agent_id)
    assert [hearsay.tally(node) for node in NODES] == [Tally(), Tally()]
    assert len(hearsay) == 0


TELL = Delta(node="n2", boot=1, sequence=2, reports=(report("a1", 1, beat=4), report("a2", 2)))


def test_an_age_is_turned_into_a_time() -> None:
    """When an instance beat is known on this node's own clock; numbers are kept in range."""
    wild = Report(
        agent_id="a1",
        incarnation=3,
        sequence=1,
        beat=-4,
        age_ms=1_500,
        load=math.inf,
        in_flight=-1,
        self_check=False,
        reach="failed",
        fault="timeout",
    )
    hearsay = Hearsay()
    assert hearsay.take(Delta(node="n2", boot=1, sequence=1, reports=(wild,)), now=9.0) == ("a1",)
    assert hearsay.about("a1") == (
        Sight(
            node="n2",
            incarnation=3,
            beat=0,
            heard_at=7.5,
            load=1.0,
            in_flight=0,
            self_check=False,
            reach="failed",
            fault="timeout",
        ),
    )


def test_news_is_what_changed() -> None:
    """Whoever takes a delta learns which instances to look at again."""
    hearsay = Hearsay()
    assert hearsay.take(TELL, now=1.0) == ("a1", "a2")
    assert hearsay.take(TELL, now=2.0) == ()
    later = Delta(node="n2", boot=1, sequence=3, reports=(report("a1", 3),))
    assert hearsay.take(later, now=3.0) == ("a1",)
    assert hearsay.heard_up_to("n2") == (1, 3)
    assert hearsay.heard_up_to("n3") == (0, 0)


def test_a_later_start_speaks_for_the_node() -> None:
    """What a node said before it started again is gone, even if it comes late."""
    hearsay = Hearsay()
    hearsay.take(TELL, now=1.0)
    assert hearsay.take(Delta(node="n2", boot=2, sequence=0), now=2.0) == ("a1", "a2")
    assert hearsay.about("a1") == ()
    assert hearsay.take(TELL, now=3.0) == ()
    assert hearsay.about("a1") == ()


def test_a_silent_node_takes_nothing_along() -> None:
    """Its word stands, it is told silent once, and all it said is news when it speaks again."""
    hearsay = Hearsay()
    hearsay.take(TELL, now=1.0)
    assert hearsay.live == ("n2",)
    assert hearsay.silenced(1.0 + SILENT_SECONDS - 0.1) == ()
    assert hearsay.silenced(1.0 + SILENT_SECONDS) == ("n2",)
    assert hearsay.silenced(9.0) == ()
    assert not hearsay.is_live("n2")
    assert not hearsay.is_live("n9")
    assert [one.beat for one in hearsay.about("a1")] == [4]
    assert hearsay.take(Delta(node="n2", boot=1, sequence=2), now=10.0) == ("a1", "a2")
    assert hearsay.is_live("n2")


def test_a_member_that_left_is_not_believed() -> None:
    """Of a node that is no member any more nothing is kept."""
    hearsay = Hearsay()
    hearsay.take(TELL, now=1.0)
    hearsay.take(Delta(node="n3", boot=1, sequence=1, reports=(report("a3", 1),)), now=1.0)
    assert hearsay.retain({"n1", "n3"}) == ("a1", "a2")
    assert (hearsay.of("n2"), hearsay.of("n3")) == ((), ("a3",))
    assert hearsay.tally("n2") == Tally()


def test_it_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that says too much loses its oldest words, and that is news."""
    monkeypatch.setattr(room, "SIGHTS_MAX", 2)
    hearsay = Hearsay()
    hearsay.take(TELL, now=1.0)
    more = Delta(node="n2", boot=1, sequence=4, reports=(report("a3", 3), report("a2", 4)))
    assert hearsay.take(more, now=2.0) == ("a3", "a2", "a1")
    assert sorted(hearsay.of("n2")) == ["a2", "a3"]
    assert hearsay.tally("n2") == Tally()


def test_one_lost_node_costs_no_instance() -> None:
    """Its instances are healthy at unknown age, beat elsewhere, and nobody is called down."""
    cluster = three(*(f"a{at}" for at in range(60)))
    cluster.homes = homes(cluster.state.agents, "n1", "n2", "n3")
    cluster.run(10.0)
    lost = [agent_id for agent_id, home in cluster.homes.items() if home == "n3"]
    cluster.cut = {"n3"}
    for agent_id in lost:
        del cluster.homes[agent_id]
    cluster.run(SILENT_SECONDS + 1.0)
    ages = {cluster.seen(agent_id).age_ms(cluster.now) for agent_id in lost}
    assert ages == {None}
    assert cluster["n1"].live == {"n1", "n2"}
    assert cluster.states() == {"healthy"}
    cluster.homes.update(dict.fromkeys(lost, "n1"))
    cluster.run(60.0)
    assert cluster.states() == cluster.states("n2") == {"healthy"}
    assert cluster.commands == []
    cluster.cut = set()
    cluster.run(3.0)
    assert {cluster.seen(agent_id, "n3").home for agent_id in lost} == {"n1"}
    assert cluster.states("n3") == {"healthy"}


def test_a_cut_off_node_keeps_what_it_knew() -> None:
    """It hears nobody and calls nobody down, though it reaches none and can ask none."""
    cluster = three("a1", "b1")
    cluster.homes = homes(["a1", "b1"], "n1", "n2")
    cluster.run(10.0)
    cluster.cut = {"n3"}
    cluster.run(30.0)
    assert cluster.states("n3") == {"healthy"}
    assert cluster.seen("a1", "n3").basis == "own"
    cluster.reachable = lambda node, agent_id: node != "n3"
    cluster.run(60.0)
    assert cluster.states("n3") == {"suspect"}
    assert cluster["n3"].proposals() == ()
    assert cluster.states("n1") == {"healthy"}


def test_only_members_are_believed() -> None:
    """What a node said that is no member any more counts for nothing."""
    cluster = three("a1")
    cluster.beat("n2", "a1")
    cluster.gossip()
    assert cluster.seen("a1").state == "healthy"
    cluster["n1"].members(["n1", "n3"])
    assert cluster.seen("a1").state == "pending"
    assert cluster["n1"].live == {"n1", "n3"}
