"""What one node, and several together, make of all instances."""

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.errors import Superseded, UnknownAgent
from reachnode.liveness.damping import FALLS_MAX, HOLD_SECONDS
from reachnode.liveness.hearsay import SILENT_SECONDS
from reachnode.liveness.outlook import RECHECKS_MAX, Outlook
from reachnode.liveness.probes import DOUBT_SECONDS
from reachnode.model.agents import Health
from reachnode.model.liveness import Delta, Heartbeat, Liveness, ProbeOrder, Report
from reachnode.model.settings import ProbeRules
from reachnode.registry.apply import EFFECTS
from reachnode.registry.commands import (
    Command,
    Deregister,
    Mark,
    MarkDown,
    MarkUp,
    Register,
    SetAgentState,
)
from reachnode.registry.state import State, genesis
from tests.liveness.crowds import instance, registered, set_to

BEAT = Heartbeat()
FINE = Heartbeat(self_check=True)
TICK = 0.5


class Cluster:
    """Outlooks of several nodes, in virtual time, whose loops are run by hand.

    Agents beat to a home and answer probes, unless a test says otherwise.
    """

    def __init__(self, state: State, *nodes: str) -> None:
        self.now = 100.0
        self.state = state
        self.dice = random.Random(1)
        self.nodes = {node: Outlook(me=node, boot=1, state=state, now=self.now) for node in nodes}
        self.told: dict[tuple[str, str], int] = {}
        self.cut: set[str] = set()
        self.homes: dict[str, str] = {}
        self.beat_at: dict[str, float] = {}
        self.reachable: Callable[[str, str], bool] = lambda node, agent_id: True
        self.index = 1_000
        self.commands: list[Command] = []
        self.probes: list[tuple[str, str]] = []

    def __getitem__(self, node: str) -> Outlook:
        return self.nodes[node]

    def apply(self, command: Command) -> None:
        """Let the log say something, on every node alike."""
        self.index += 1
        before = self.state
        self.state, _ = EFFECTS[type(command)](before, self.index, command)
        changed = [
            agent_id
            for agent_id in {*before.agents, *self.state.agents}
            if before.agents.get(agent_id) is not self.state.agents.get(agent_id)
        ]
        for outlook in self.nodes.values():
            outlook.follow(self.state, changed, now=self.now)

    def beat(self, node: str, agent_id: str, heartbeat: Heartbeat = BEAT) -> None:
        """Let an instance beat to a node."""
        self[node].heartbeat(agent_id, heartbeat, now=self.now)

    def gossip(self) -> None:
        """Let every node tell every other what is new, unless one of them is cut off."""
        for node, outlook in self.nodes.items():
            for peer, other in self.nodes.items():
                if node == peer or {node, peer} & self.cut:
                    continue
                while True:
                    delta = outlook.tell(self.told.get((node, peer), 0), now=self.now, most=7)
                    self.told[node, peer] = delta.sequence
                    other.take(delta, now=self.now)
                    if delta.sequence == outlook.told_up_to:
                        break

    def probe(self, node: str) -> None:
        """Let a node make the probes that are due, and ask whom it wants to ask."""
        outlook = self[node]
        for order in outlook.probes_due(now=self.now, draw=self.dice.random):
            self.probes.append((node, order.agent_id))
            asked = outlook.probed(order, self.fault(node, order), now=self.now)
            if asked is None or {node, asked} & self.cut:
                continue
            peer = self[asked]
            second = peer.asked(order.agent_id, order.incarnation, now=self.now)
            if second is not None:
                is_reached = peer.opined(second, self.fault(asked, second), now=self.now)
                outlook.opinion(order.agent_id, order.incarnation, is_reached=is_reached)

    def fault(self, node: str, order: ProbeOrder) -> str:
        return "" if self.reachable(node, order.agent_id) else "timeout"

    def propose(self, node: str) -> None:
        """Let a node propose what it wants to; a cut-off one can't."""
        commands = self[node].proposals()
        if node in self.cut:
            return
        for command in commands:
            self.commands.append(command)
            self.apply(command)

    def run(self, seconds: float) -> None:
        """Let time pass: heartbeats, sweeps, gossip, probes and proposals of every node."""
        for _ in range(round(seconds / TICK)):
            self.now += TICK
            for agent_id, home in self.homes.items():
                if self.now >= self.beat_at.get(agent_id, 0.0) + 3.0:
                    self.beat_at[agent_id] = self.now
                    self.beat(home, agent_id, FINE)
            for node in self.nodes:
                self[node].sweep(now=self.now)
            self.gossip()
            for node in self.nodes:
                self.probe(node)
                self.propose(node)

    def seen(self, agent_id: str, node: str = "n1") -> Liveness:
        """Return what a node makes of an instance."""
        return self[node].of(self.state.agents[agent_id])

    def states(self, node: str = "n1") -> set[str]:
        """Return all states that a node sees."""
        return {self.seen(agent_id, node).state for agent_id in self.state.agents}


def three(*agent_ids: str) -> Cluster:
    """Return a cluster of three nodes with some instances registered."""
    return Cluster(registered(*agent_ids), "n1", "n2", "n3")


def alone(state: State) -> Cluster:
    """Return a cluster that has one member."""
    return Cluster(replace(state, members=genesis("c1", {"n1": "d0"}).members), "n1")


def homes(agent_ids: Iterable[str], *nodes: str) -> dict[str, str]:
    """Return a home for each instance, in turn."""
    return {agent_id: nodes[at % len(nodes)] for at, agent_id in enumerate(sorted(agent_ids))}


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


def test_each_instance_is_probed_by_one_node() -> None:
    """The work is spread: an instance has one prober while the nodes hear each other."""
    cluster = three(*(f"a{at}" for at in range(30)))
    cluster.gossip()
    cluster.run(20.0)
    probers: dict[str, set[str]] = {}
    for node, agent_id in cluster.probes:
        probers.setdefault(agent_id, set()).add(node)
    assert all(len(nodes) == 1 for nodes in probers.values())
    assert set(probers) == set(cluster.state.agents)
    assert {node for nodes in probers.values() for node in nodes} == {"n1", "n2", "n3"}


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


def test_the_lease_follows_the_beats() -> None:
    """An instance that beats to another node has one home, and its old one lets go."""
    cluster = three("a1")
    cluster.homes = {"a1": "n1"}
    cluster.run(10.0)
    cluster.homes = {"a1": "n2"}
    cluster.run(30.0)
    assert {cluster.seen("a1", node).home for node in cluster.nodes} == {"n2"}
    assert cluster["n1"].tell(0, now=cluster.now).reports[0].beat == 0


def test_many_lost_by_one_home_put_the_home_in_doubt() -> None:
    """They stay candidates at reduced weight and are probed from elsewhere."""
    cluster = three(*(f"a{at}" for at in range(30)))
    cluster.homes = homes(cluster.state.agents, "n1", "n2", "n3")
    cluster.run(10.0)
    silent = [agent_id for agent_id, home in cluster.homes.items() if home == "n1"]
    for agent_id in silent:
        del cluster.homes[agent_id]
    cluster.run(15.0)
    for node in cluster.nodes:
        assert {cluster.seen(a, node).state for a in silent} == {"suspect"}
        assert {cluster.seen(a, node).use for a in silent} == {"reduced"}
    cluster.probes.clear()
    cluster.run(6.0)
    assert "n1" not in {node for node, agent_id in cluster.probes if agent_id in silent}
    cluster.homes.update(dict.fromkeys(silent, "n1"))
    cluster.run(5.0)
    assert cluster.states() == {"healthy"}
    assert cluster.commands == []


def test_a_node_alone_calls_a_few_down_but_doubts_itself_at_many() -> None:
    """Without others it decides alone; when half of many fail it waits, for its own fault."""
    few = alone(registered("a1", "b1"))
    few.reachable = lambda node, agent_id: False
    few.run(20.0)
    assert few.states() == {"down"}
    many = alone(registered(*(f"a{at}" for at in range(20))))
    many.run(6.0)
    many.reachable = lambda node, agent_id: False
    many.run(30.0)
    assert many.commands == []
    many.run(DOUBT_SECONDS)
    assert many.states() == {"down"}


def test_what_was_taken_out_on_purpose_is_not_found_down() -> None:
    """An instance that updates or was disabled may be gone for as long as it takes."""
    cluster = three("a1", "b1")
    cluster.apply(SetAgentState(agent_id="a1", state="updating"))
    cluster.apply(SetAgentState(agent_id="b1", state="disabled"))
    cluster.reachable = lambda node, agent_id: False
    cluster.run(60.0)
    assert cluster.commands == []
    assert (cluster.seen("a1").state, cluster.seen("b1").state) == ("updating", "disabled")


def test_a_flap_is_held() -> None:
    """An instance that falls again and again is a last resort until it is quiet."""
    cluster = alone(registered(instance("a1", health=Health(type="none"))))
    for _ in range(FALLS_MAX + 1):
        cluster.beat("n1", "a1")
        assert cluster.seen("a1").state == "healthy"
        cluster.run(11.0)
        assert cluster.seen("a1").state == "suspect"
    cluster.homes = {"a1": "n1"}
    cluster.run(5.0)
    seen = cluster.seen("a1")
    assert (seen.state, seen.is_beating) == ("suspect", True)
    cluster.run(HOLD_SECONDS)
    assert cluster.seen("a1").state == "healthy"


def test_a_flap_between_up_and_down_is_held_down() -> None:
    """The log isn't filled by one that comes and goes; a new registration is back at once."""
    quick = ProbeRules(interval_ms=1_000, failures=1)
    cluster = alone(set_to(registered("a1"), probes=quick))
    cluster.run(2.0)
    for _ in range(60):
        cluster.reachable = lambda node, agent_id: False
        cluster.run(2.0)
        cluster.reachable = lambda node, agent_id: True
        cluster.run(2.0)
    # Up and down once for each fall that is free, and then once in each hold.
    assert len(cluster.commands) <= 2 * (FALLS_MAX + 1) * (1 + 240 / HOLD_SECONDS)
    assert len(cluster.commands) < 60
    cluster.apply(Register(instance=instance("a1")))
    assert cluster.seen("a1").state == "pending"


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


def test_a_heartbeat_ahead_of_the_log_counts_when_the_log_comes() -> None:
    """A node that hasn't applied a registration yet takes the beat of its instance all the same."""
    cluster = three("a1")
    cluster.beat("n1", "a1", Heartbeat(incarnation=2))
    assert cluster.seen("a1").state == "pending"
    cluster.apply(Register(instance=instance("a1")))
    assert cluster.seen("a1").state == "healthy"
    cluster.gossip()
    assert cluster.seen("a1", "n3").state == "healthy"


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


def test_only_members_are_believed() -> None:
    """What a node said that is no member any more counts for nothing."""
    cluster = three("a1")
    cluster.beat("n2", "a1")
    cluster.gossip()
    assert cluster.seen("a1").state == "healthy"
    cluster["n1"].members(["n1", "n3"])
    assert cluster.seen("a1").state == "pending"
    assert cluster["n1"].live == {"n1", "n3"}


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
