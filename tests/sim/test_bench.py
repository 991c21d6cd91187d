"""What `bench` makes of its measurements; the contenders here answer by the clock."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from sim import bench
from sim.bench import Wish, changes_ratios, measure, page, turned
from sim.live.client import Answer, Connection, Place
from sim.live.cluster import LiveNode, TooLate
from sim.live.processes import Process
from sim.live.timing import first_confirmed, timed_changes

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
NO = b"HTTP/1.1 503 NO\r\nContent-Length: 2\r\n\r\n{}"


class Contender:
    """Members that confirm whatever they are asked after a delay."""

    version = "1"

    def __init__(self, name: str, nursery: trio.Nursery, *, answers: Sequence[bytes] = ()) -> None:
        self.name = name
        self.nodes: list[LiveNode] = []
        self._nursery = nursery
        self._answers = list(answers)

    async def start(self) -> None:
        for name in ("a", "b"):
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self._nursery.start_soon(trio.serve_listeners, self._talk, listeners)
            place = Place(host="127.0.0.1", port=listeners[0].socket.getsockname()[1])
            process = Process(name=name, argv=(), log=Path("unused"))
            self.nodes.append(LiveNode(name=name, place=place, process=process))

    async def _talk(self, stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some(65536):
                await stream.send_all(self._answers.pop(0) if self._answers else OK)

    def end(self) -> None:
        return

    async def agreed(self, *, seconds: float) -> LiveNode:
        return self.nodes[0]

    def change(self, name: str, agent_id: str) -> bytes:
        return f"{name} {agent_id}".encode()

    def is_confirmed(self, answer: Answer) -> bool:
        return answer.status == 200


WISH = Wish(rows=["changes"], rounds=2, seconds=0.05, runs=1, directory=None, json=False)


async def test_changes_are_measured_for_all_in_every_way() -> None:
    """Each contender, through leader and follower, alone and with many in flight."""
    async with trio.open_nursery() as nursery:
        ours, theirs = Contender("reachnode", nursery), Contender("etcd", nursery)
        rows = await measure(WISH, [ours, theirs])
        nursery.cancel_scope.cancel()
    results = rows["changes"]["results"]
    for name in ("reachnode", "etcd"):
        for via in ("leader", "follower"):
            for load in ("alone", "in_flight_64"):
                assert results[name][via][load]["per_second"] > 0
    assert len(rows["changes"]["ratios"]) == 4
    assert json.dumps(rows)


async def test_a_refusal_ends_a_measurement() -> None:
    """A figure of refusals would be worth nothing."""
    async with trio.open_nursery() as nursery:
        contender = Contender("reachnode", nursery, answers=[NO])
        await contender.start()
        with pytest.raises(BaseExceptionGroup) as caught:
            await timed_changes(contender, contender.nodes[0].place, in_flight=1, seconds=0.05)
        assert isinstance(bench.plain(caught.value), TooLate)
        nursery.cancel_scope.cancel()


async def test_the_first_confirmed_attempt_ends_the_wait() -> None:
    """Refused and lost attempts are passed over."""
    async with trio.open_nursery() as nursery:
        contender = Contender("reachnode", nursery, answers=[NO, NO, NO])
        await contender.start()
        before = trio.current_time()
        gone = Place(host="127.0.0.1", port=1)
        at = await first_confirmed(contender, [contender.nodes[1].place, gone])
        assert before < at <= trio.current_time()
        nursery.cancel_scope.cancel()


def test_ratios_are_ours_to_theirs() -> None:
    """Below 1 is better for a latency, above 1 for a rate."""
    one = {"alone": {"p50_ms": 2.0}, "in_flight_64": {"per_second": 30.0}}
    two = {"alone": {"p50_ms": 4.0}, "in_flight_64": {"per_second": 10.0}}
    results = {
        "reachnode": {"leader": one, "follower": two},
        "etcd": {"leader": two, "follower": one},
    }
    assert changes_ratios(results) == {
        "leader_alone_p50": 0.5,
        "leader_in_flight_64_per_second": 3.0,
        "follower_alone_p50": 2.0,
        "follower_in_flight_64_per_second": 0.33,
    }


async def test_turns_alternate() -> None:
    """Whoever is measured second in one turn is first in the next."""
    async with trio.open_nursery() as nursery:
        both = [Contender("reachnode", nursery), Contender("etcd", nursery)]
    assert [one.name for one in turned(both, 0)] == ["reachnode", "etcd"]
    assert [one.name for one in turned(both, 1)] == ["etcd", "reachnode"]


def test_a_page_names_figures_versions_and_machine() -> None:
    """Alone, without anybody to compare with, the figures stand for themselves."""
    one = {"p50_ms": 1.5, "p99_ms": 2.5, "per_second": 700.0}
    rows = {
        "changes": {"rounds": 3, "results": {"reachnode": {"leader": {"alone": one}}}},
        "failover": {
            "runs": 20,
            "results": {"reachnode": {"p50": 400.0, "p99": 600.0, "max": 600.0}},
            "ratios": {"p50": 0.4},
        },
    }
    text = page({"rows": rows, "versions": {"reachnode": "1"}, "machine": {"cores": 2}})
    assert "1.50 ms" in text
    assert "700/s" in text
    assert "reachnode / etcd: p50 0.4" in text
    assert text.endswith("reachnode 1\ncores 2")


async def test_a_fault_of_ours_is_not_hidden() -> None:
    """Only what a measurement can meet becomes a line."""
    with pytest.raises(KeyError):
        bench.plain(KeyError("x"))


async def test_without_anybody_there_is_no_connection() -> None:
    """A connection that was never made closes as well."""
    Connection(Place(host="127.0.0.1", port=1)).close()
