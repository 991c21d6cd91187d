"""Figures for Prometheus."""

import re
from dataclasses import replace

from reachnode.model.membership import Syncs
from reachnode.registry.commands import Register
from reachnode.serve.metrics import CAPABILITIES_MAX, escaped, number, sync_times
from tests.registry.test_agents import parser
from tests.serve.client import ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of


async def test_figures_are_shown() -> None:
    """Consensus, links and this front are on one page that Prometheus reads."""
    front = front_of(LocalReplica(), {"accepted": 2})
    front.answers_count[200] = 5
    front.accept_failures = lambda: 4
    got = await ask(front, "GET", "/metrics")
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = got.body.decode().splitlines()
    for line in (
        'reachnode_build_info{version="0.0.1",node="n1"} 1',
        "reachnode_ready 1",
        "reachnode_raft_term 3",
        "reachnode_raft_commit_index 0",
        "reachnode_raft_apply_lag 0",
        "reachnode_raft_leader_changes_total 1",
        "reachnode_raft_appends_total 7",
        "reachnode_link_accepted_total 2",
        'reachnode_http_answers_total{status="200"} 5',
        "reachnode_http_accept_failures_total 4",
        "reachnode_http_streams_slow_total 0",
        "reachnode_gossip_deltas_sent_total 3",
        "reachnode_watchers 0",
        "reachnode_stale_answers_total 0",
    ):
        assert line in lines
    figure = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    assert all(line.startswith("#") or figure.fullmatch(line) for line in lines)


async def test_instances_are_counted_by_capability_and_state() -> None:
    """As this node sees them; beyond so many capabilities they are counted together."""
    replica = LocalReplica()
    front = front_of(replica)
    many = [f"c{at:03}" for at in range(CAPABILITIES_MAX + 5)]
    for agent_id in ("a1", "a2", "a3"):
        await replica.propose(Register(instance=parser(agent_id, *many)), deadline=0)
    await ask(front, "POST", "/heartbeat", {"agent_id": "a2"})
    wish = {"state": "disabled", "force": True}
    await ask(front, "POST", "/api/v1/agents/a3/state", wish)
    page = (await ask(front, "GET", "/metrics")).body.decode().splitlines()
    assert 'reachnode_instances{capability="c000",state="pending"} 1' in page
    assert 'reachnode_instances{capability="c000",state="healthy"} 1' in page
    assert 'reachnode_instances{capability="(others)",state="disabled"} 5' in page
    assert sum(line.startswith("reachnode_instances{") for line in page) == 3 * (
        CAPABILITIES_MAX + 1
    )
    cluster = (await ask(front, "GET", "/api/v1/cluster")).json
    assert cluster["agents"] == {"disabled": 1, "healthy": 1, "pending": 1}


async def test_nothing_is_counted_before_the_table_is_there() -> None:
    """No figure is better than a wrong one."""
    front = front_of(LocalReplica(now=replace(ALONE, phase="loading")))
    page = (await ask(front, "GET", "/metrics")).body.decode()
    assert "reachnode_instances{" not in page
    assert (await ask(front, "GET", "/api/v1/cluster")).json["agents"] == {}


def test_labels_are_escaped() -> None:
    """No label can end its line or its quotes."""
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'


def test_a_large_index_is_shown_in_full() -> None:
    """An index of more than six digits is not rounded, and no whole number gets a point."""
    assert number(12_345_678) == "12345678"
    assert number(0.25) == "0.25"
    assert number(value=True) == "1"


def test_syncs_are_counted_by_how_long_they_took() -> None:
    """Each bucket holds all syncs up to its bound, the last one all of them."""
    syncs = Syncs().with_one(0.0004).with_one(0.003).with_one(9.0)
    page = "".join(sync_times(syncs))
    assert 'reachnode_raft_fsync_seconds_bucket{le="0.0005"} 1\n' in page
    assert 'reachnode_raft_fsync_seconds_bucket{le="0.002"} 1\n' in page
    assert 'reachnode_raft_fsync_seconds_bucket{le="0.005"} 2\n' in page
    assert 'reachnode_raft_fsync_seconds_bucket{le="+Inf"} 3\n' in page
    assert "reachnode_raft_fsync_seconds_count 3\n" in page
