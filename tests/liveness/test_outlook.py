"""What one node, and several together, make of all instances."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.errors import Superseded, UnknownAgent
from reachnode.liveness.damping import HOLD_SECONDS
from reachnode.liveness.outlook import RECHECKS_MAX, Outlook
from reachnode.model.liveness import Delta, Heartbeat, ProbeOrder, Report
from reachnode.registry.commands import (
    Deregister,
    Mark,
    MarkDown,
    MarkUp,
    Register,
    SetAgentState,
)
from tests.liveness.clusters import BEAT, TICK, Cluster, alone, homes, three
from tests.liveness.crowds import instance, registered


def test_an_instance_is_pending_until_it_is_heard() -> None:
    """Nothing is known of it, then it beats, and every node says so with its age."""
    cluster = three("a1")
    assert cluster.seen("a1").state == "pending"
    cluster.beat("n2", "a1", Heartbeat(load=0.25, in_flight=3))
    cluster.gossip()
    cluster.now += 1.0
    own, hearsay = cluster.seen("a1", "n2"), cluster.seen("a1", "n1")
    assert (own.state, own.basis, own.home) == ("healthy", "own", "n2")
    assert (hearsay.state, hearsay.basis, hearsay.home) == ("healthy", "hearsay", "n2")
    assert (hearsay.load, hearsay.in_flight, hearsay.age_ms(cluster.now)) == (0.25, 3, 1_000)
    assert cluster["n1"].counts == {"healthy": 1}
    assert cluster["n1"].stirred() == {"a1": "pending"}
    assert cluster["n1"].stirred() == {}


def test_the_first_good_probe_makes_it_healthy() -> None:
    """An instance that never beats is healthy for as long as a node reaches it."""
    cluster = three("a1")
    cluster.run(1.0)
    assert {cluster.seen("a1", node).state for node in cluster.nodes} == {"healthy"}
    cluster.run(60.0)
    assert cluster.states() == {"healthy"}
    assert cluster.commands == []


def test_silence_makes_suspect_and_nothing_worse() -> None:
    """An instance that stops beating but answers stays, as the last resort, for ever."""
    cluster = three("a1")
    cluster.homes = {"a1": "n2"}
    cluster.run(10.0)
    cluster.homes = {}
    cluster.run(8.0)
    assert cluster.states() == {"healthy"}
    cluster.run(120.0)
    for node in cluster.nodes:
        seen = cluster.seen("a1", node)
        assert (seen.state, seen.use) == ("suspect", "last")
    assert cluster.commands == []
    cluster.beat("n3", "a1")
    cluster.gossip()
    assert {cluster.seen("a1", node).state for node in cluster.nodes} == {"healthy"}


def test_a_dead_instance_is_down_once_two_nodes_agree() -> None:
    """Silence, three failed probes and a second opinion: then, and only then, it is down."""
    cluster = three("a1", "b1")
    cluster.homes = {"a1": "n1", "b1": "n1"}
    cluster.run(10.0)
    cluster.homes = {"b1": "n1"}
    cluster.reachable = lambda node, agent_id: agent_id == "b1"
    cluster.run(40.0)
    assert cluster.commands == [MarkDown(marks=(Mark(agent_id="a1", incarnation=1),))]
    for node in cluster.nodes:
        assert (cluster.seen("a1", node).state, cluster.seen("b1", node).state) == (
            "down",
            "healthy",
        )


def test_one_that_answers_again_is_up_with_the_first_probe() -> None:
    """It needs no new registration; the next probe that gets through brings it back."""
    cluster = three("a1")
    cluster.reachable = lambda node, agent_id: False
    cluster.run(30.0)
    assert cluster.states() == {"down"}
    cluster.reachable = lambda node, agent_id: True
    cluster.run(6.0)
    assert cluster.commands[-1] == MarkUp(marks=(Mark(agent_id="a1", incarnation=1),))
    assert cluster.states() == {"healthy"}


def test_one_that_beats_again_is_up_at_once() -> None:
    """A heartbeat to any node is enough, and only its home proposes it."""
    cluster = three("a1")
    cluster.reachable = lambda node, agent_id: False
    cluster.run(30.0)
    assert cluster.states() == {"down"}
    cluster.beat("n3", "a1")
    cluster.gossip()
    assert cluster["n1"].proposals() == ()
    cluster.propose("n3")
    assert {cluster.seen("a1", node).state for node in cluster.nodes} == {"healthy"}


def test_who_registers_again_is_back_at_once() -> None:
    """A restarted process is pending, and healthy with its first beat."""
    cluster = three("a1")
    cluster.reachable = lambda node, agent_id: False
    cluster.run(30.0)
    cluster.beat("n3", "a1")
    cluster.apply(Register(instance=instance("a1")))
    assert cluster["n3"].proposals() == ()
    assert cluster.seen("a1").state == "pending"
    cluster.beat("n2", "a1")
    assert cluster.seen("a1", "n2").state == "healthy"
    with pytest.raises(Superseded):
        cluster.beat("n2", "a1", Heartbeat(incarnation=1))


def test_a_beating_instance_is_never_down() -> None:
    """Fresh heartbeats with failing probes mean: unreachable from there, and nothing else."""
    cluster = three("a1", "b1")
    cluster.homes = homes(["a1", "b1"], "n1", "n2")
    cluster.reachable = lambda node, agent_id: False
    cluster.run(120.0)
    assert cluster.commands == []
    assert cluster.states() == {"healthy"}
    assert all(len(cluster.seen(agent_id).unreachable_from) == 1 for agent_id in ("a1", "b1"))


def test_a_node_that_reaches_nobody_takes_nobody_out() -> None:
    """Its probes fail, others' don't: nobody is down, and it alone is where they fail from."""
    cluster = three(*(f"a{at}" for at in range(12)))
    cluster.homes = homes(cluster.state.agents, "n2", "n3")
    cluster.reachable = lambda node, agent_id: node != "n1"
    cluster.run(60.0)
    assert cluster.commands == []
    assert cluster.states() == {"healthy"}
    assert {node for a in cluster.state.agents for node in cluster.seen(a).unreachable_from} == {
        "n1"
    }


def test_a_silent_instance_is_not_down_while_one_node_reaches_it() -> None:
    """The second opinion is asked of the others in turn, and one good answer is enough."""
    cluster = three("a1")
    cluster.run(1.0)
    prober = cluster.probes[0][0]
    cluster.reachable = lambda node, agent_id: node != prober
    cluster.run(120.0)
    assert cluster.commands == []
    assert (cluster.seen("a1").state, cluster.seen("a1").unreachable_from) == (
        "healthy",
        (prober,),
    )


def test_an_opinion_that_comes_late_or_not_at_all_does_nothing() -> None:
    """Only a failed probe of what still fails, still stands and is still silent counts."""
    cluster = three("a1")
    cluster.run(1.0)
    prober = cluster[cluster.probes[0][0]]
    prober.opinion("a1", 1, is_reached=False)
    assert prober.proposals() == ()
    cluster.reachable = lambda node, agent_id: False
    cluster.nodes = {cluster.probes[0][0]: prober}
    cluster.run(2.5)
    cluster.cut = {cluster.probes[0][0]}
    cluster.run(30.0)
    assert cluster.commands == []
    prober.opinion("a1", 1, is_reached=True)
    assert prober.proposals() == ()
    prober.opinion("a1", 1, is_reached=False)
    prober.heartbeat("a1", BEAT, now=cluster.now)
    assert prober.proposals() == ()
    assert prober.asked("a1", 7, now=cluster.now) is None


def test_what_was_taken_out_on_purpose_is_not_found_down() -> None:
    """An instance that updates or was disabled may be gone for as long as it takes."""
    cluster = three("a1", "b1")
    cluster.apply(SetAgentState(agent_id="a1", state="updating"))
    cluster.apply(SetAgentState(agent_id="b1", state="disabled"))
    cluster.reachable = lambda node, agent_id: False
    cluster.run(60.0)
    assert cluster.commands == []
    assert (cluster.seen("a1").state, cluster.seen("b1").state) == ("updating", "disabled")


def test_a_good_call_is_as_good_as_a_probe() -> None:
    """An instance whose health endpoint fails stays while calls to it work."""
    cluster = alone(registered("a1"))
    cluster.run(1.0)
    cluster.reachable = lambda node, agent_id: False
    for _ in range(60):
        cluster.run(1.0)
        cluster["n1"].called("a1", now=cluster.now)
    assert cluster.commands == []
    assert (cluster.seen("a1").state, cluster.seen("a1").fault) == ("healthy", "timeout")


def test_what_is_gone_leaves_nothing() -> None:
    """A removed instance is unknown, untold and unprobed, and a late result does no harm."""
    cluster = three("a1")
    cluster.beat("n1", "a1")
    order = ProbeOrder(agent_id="a1", incarnation=1, type="tcp", endpoint="", timeout_seconds=1)
    cluster.apply(Deregister(agent_id="a1"))
    assert cluster["n1"].probed(order, "timeout", now=cluster.now) is None
    cluster["n1"].called("a1", now=cluster.now)
    assert cluster["n1"].opined(order, "timeout", now=cluster.now) is False
    cluster["n1"].opinion("a1", 1, is_reached=False)
    assert cluster["n1"].tell(0, now=cluster.now).reports == ()
    assert (cluster["n1"].counts, cluster["n1"].proposals()) == ({}, ())
    with pytest.raises(UnknownAgent):
        cluster.beat("n1", "a1")


def test_a_predecessor_s_silence_is_nobody_s() -> None:
    """The lease of a process that was replaced, or is down, doesn't run out and isn't told."""
    cluster = three("a1")
    cluster.beat("n1", "a1")
    cluster.apply(Register(instance=instance("a1")))
    for _ in range(40):
        cluster.now += TICK
        assert cluster["n1"].sweep(now=cluster.now) == ()
    assert cluster["n1"].tell(0, now=cluster.now).reports[0].beat == 0
    dead = three("b1")
    dead.beat("n1", "b1")
    dead.reachable = lambda node, agent_id: False
    dead.run(40.0)
    assert dead.states() == {"down"}
    assert dead["n1"].tell(0, now=dead.now).reports[0].beat == 0


def test_a_heartbeat_elsewhere_stands_for_a_probe_here() -> None:
    """Wherever an instance beats with a good self-check, it is really probed once a minute."""
    cluster = three(*(f"a{at}" for at in range(9)))
    cluster.homes = homes(cluster.state.agents, "n1", "n2", "n3")
    cluster.run(20.0)
    cluster.probes.clear()
    cluster.run(60.0)
    assert sorted(agent_id for _, agent_id in cluster.probes) == sorted(cluster.state.agents)


def test_whoever_falls_silent_is_probed_at_once() -> None:
    """The moment an instance is suspect its prober looks at it, before its turn."""
    cluster = three("a1")
    cluster.homes = {"a1": "n1"}
    cluster.run(30.0)
    cluster.homes = {}
    while cluster.seen("a1").state == "healthy":
        cluster.probes.clear()
        cluster.run(TICK)
    assert [agent_id for _, agent_id in cluster.probes] == ["a1"]


def test_an_answer_is_of_the_record_that_is_asked_for() -> None:
    """A reader with an older state gets an answer about that, which isn't kept."""
    cluster = three("a1")
    old = cluster.state.agents["a1"]
    cluster.beat("n1", "a1")
    assert cluster["n1"].of(old).state == "healthy"
    cluster.apply(SetAgentState(agent_id="a1", state="disabled"))
    assert cluster["n1"].of(old).state == "healthy"
    assert cluster.seen("a1").state == "disabled"


def test_a_node_doesn_t_take_its_own_word() -> None:
    """What comes back to its sender is no news."""
    cluster = three("a1")
    report = Report(agent_id="a1", incarnation=1, sequence=1, beat=1)
    cluster["n1"].take(Delta(node="n1", boot=9, sequence=1, reports=(report,)), now=cluster.now)
    assert cluster.seen("a1").state == "pending"


def test_a_crowd_is_taken_in_turns() -> None:
    """A whole new table is looked at a part at a time, and asked for it is there at once."""
    state = registered(*(f"a{at:04}" for at in range(2 * RECHECKS_MAX + 50)))
    outlook = Outlook(me="n1", boot=1, state=state, now=0.0)
    assert outlook.of(state.agents["a0249"]).state == "pending"
    assert outlook.counts["pending"] == RECHECKS_MAX + 1
    outlook.sweep(now=0.5)
    assert outlook.counts["pending"] == 2 * RECHECKS_MAX + 1
    outlook.probes_due(now=0.6, draw=random.random)
    assert outlook.counts["pending"] == len(state.agents)
    reports = tuple(
        Report(agent_id=agent_id, incarnation=record.instance.incarnation, sequence=at, beat=1)
        for at, (agent_id, record) in enumerate(sorted(state.agents.items()), start=1)
    )
    outlook.take(Delta(node="n2", boot=1, sequence=999, reports=reports), now=1.0)
    assert outlook.of(state.agents["a0249"]).state == "healthy"
    assert outlook.counts["pending"] == len(state.agents) - RECHECKS_MAX - 1
    for at in range(3):
        outlook.sweep(now=1.5 + at)
    assert outlook.counts == {"healthy": len(state.agents)}
    # The same when the one who said it falls silent.
    outlook.sweep(now=9.0)
    assert outlook.of(state.agents["a0249"]).use == "reduced"


@settings(max_examples=8, deadline=None)
@given(st.integers())
def test_whatever_happens_the_beating_stay(seed: int) -> None:
    """Cuts, silences and moves at random: who beats is never down, and all agree in the end."""
    dice = random.Random(seed)
    cluster = three(*(f"a{at}" for at in range(8)))
    cluster.homes = homes(cluster.state.agents, "n1", "n2", "n3")
    blocked: set[tuple[str, str]] = set()
    cluster.reachable = lambda node, agent_id: (node, agent_id) not in blocked
    for _ in range(12):
        cluster.cut = {dice.choice(["n1", "n2", "n3"])} if dice.random() < 0.5 else set()
        blocked = {
            (node, agent_id)
            for node in cluster.nodes
            for agent_id in cluster.state.agents
            if dice.random() < 0.5
        }
        for agent_id in cluster.homes:
            cluster.homes[agent_id] = dice.choice(
                [node for node in cluster.nodes if node not in cluster.cut]
            )
        cluster.run(dice.choice([2.0, 8.0, 20.0]))
        assert cluster.commands == []
    cluster.cut, blocked = set(), set()
    cluster.run(90.0 + HOLD_SECONDS)
    for agent_id in cluster.state.agents:
        assert {cluster.seen(agent_id, node).state for node in cluster.nodes} == {"healthy"}
        assert {cluster.seen(agent_id, node).home for node in cluster.nodes} == {
            cluster.homes[agent_id]
        }


def apart(cluster: Cluster, node: str, seconds: float) -> None:
    """Let time pass while a node is cut off."""
    cluster.cut = {node}
    cluster.run(seconds)
    cluster.cut = set()


def unreachable(cluster: Cluster) -> None:
    """Let every probe fail from now on."""
    cluster.reachable = lambda _node, _agent_id: False


def test_a_silent_home_leaves_time_to_find_another() -> None:
    """Probes that failed all along don't condemn an instance in the moment its home goes."""
    cluster = three("a1")
    unreachable(cluster)
    cluster.homes = {"a1": "n3"}
    cluster.run(30.0)
    cluster.homes = {}  # It is on its way to another home.
    apart(cluster, "n3", 8.0)
    assert cluster.commands == []
    cluster.homes = {"a1": "n1"}
    apart(cluster, "n3", 20.0)
    assert cluster.commands == []
    assert cluster.seen("a1", "n2").home == "n1"


def test_a_node_that_hears_it_vouches_for_it() -> None:
    """A newcomer that only knows failing probes is told by the one it asks."""
    cluster = three("a1")
    unreachable(cluster)
    cluster.homes = {"a1": "n2"}
    apart(cluster, "n3", 20.0)
    apart(cluster, "n2", 4.0)
    assert cluster.commands == []


def test_a_lease_that_ran_out_overrules_none_that_holds() -> None:
    """Whichever node counted more beats before they were apart."""
    cluster = three("a1")
    unreachable(cluster)
    cluster.homes = {"a1": "n2"}
    apart(cluster, "n3", 60.0)
    cluster.homes = {"a1": "n3"}
    apart(cluster, "n2", 13.0)
    cluster.run(0.5)
    assert {cluster.seen("a1", node).home for node in cluster.nodes} == {"n3"}
    assert {cluster.seen("a1", node).is_beating for node in cluster.nodes} == {True}
    assert cluster.commands == []
