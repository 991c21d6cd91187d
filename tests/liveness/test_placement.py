"""Which node looks after an instance."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.placement import ranked, weight
from tests.liveness.clusters import three

nodes = st.sets(st.sampled_from([f"n{at}" for at in range(9)]), min_size=1)
agent_ids = st.text("abc-.:_", min_size=1, max_size=8)


@given(agent_ids, nodes)
def test_the_order_of_the_nodes_doesn_t_matter(agent_id: str, some: set[str]) -> None:
    """Every node that sees the same nodes comes to the same answer."""
    shuffled = sorted(some, key=lambda node: weight(node, agent_id[::-1]))
    assert ranked(agent_id, shuffled) == ranked(agent_id, some)
    assert set(ranked(agent_id, some)) == some


@given(agent_ids, nodes, st.sampled_from(["n0", "n4", "n8"]))
def test_only_what_must_moves(agent_id: str, some: set[str], gone: str) -> None:
    """When a node leaves, the others keep their order, and so all that they had."""
    before = [node for node in ranked(agent_id, some) if node != gone]
    assert ranked(agent_id, some - {gone}) == tuple(before)


@given(agent_ids, nodes)
def test_whose_word_is_in_doubt_comes_last(agent_id: str, some: set[str]) -> None:
    """The others keep their order before it; one that isn't there changes nothing."""
    doubtful = min(some)
    others = [node for node in ranked(agent_id, some) if node != doubtful]
    assert ranked(agent_id, some, last=doubtful) == (*others, doubtful)
    assert ranked(agent_id, some, last="n99") == ranked(agent_id, some)


def test_the_answer_is_for_ever() -> None:
    """Nodes of different versions agree, so the hash never changes."""
    assert weight("n1", "a1").hex() == "0844a93b81c6f1b5"
    assert ranked("a1", ["n1", "n2", "n3"]) == ("n2", "n3", "n1")


def test_the_work_is_shared() -> None:
    """Of three nodes each looks after about a third."""
    shares = Counter(ranked(f"agent-{at}", ["n1", "n2", "n3"])[0] for at in range(3_000))
    assert all(900 < share < 1_100 for share in shares.values())


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
