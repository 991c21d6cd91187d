"""Which probes are due, and what follows from their results."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.liveness.probes import (
    DOUBT_SECONDS,
    LATE_SECONDS,
    POPS_MAX,
    PROBES_PER_SECOND,
    URGENT_PER_SECOND,
    Probes,
    Round,
    Watch,
    interval_seconds,
    target_of,
)
from reachnode.model.agents import Health, Instance
from reachnode.model.capabilities import Capability
from reachnode.model.liveness import ProbeOrder, Verdict
from reachnode.model.settings import ProbeRules
from tests.liveness.crowds import always, instance, middle, never

RULES = ProbeRules()


def looked(
    probes: Probes,
    now: float,
    *,
    is_mine: Callable[[str], bool] = always,
    is_urgent: Callable[[str], bool] = never,
    draw: Callable[[], float] = middle,
    rules: ProbeRules = RULES,
) -> Round:
    """Return what is due, for a node that probes everything unless another is said."""
    return probes.due(rules, now=now, draw=draw, is_mine=is_mine, is_urgent=is_urgent)


def due(probes: Probes, now: float, *, is_urgent: Callable[[str], bool] = never) -> list[str]:
    """Return whom to probe now."""
    return [order.agent_id for order in looked(probes, now, is_urgent=is_urgent).orders]


def watching(*agent_ids: str, at: float = 0.0) -> Probes:
    """Return probes of instances at incarnation 1."""
    probes = Probes()
    for agent_id in agent_ids:
        probes.watch(instance(agent_id, incarnation=1), at=at)
    return probes


def order_of(probes: Probes, now: float) -> ProbeOrder:
    """Return the one probe that is due."""
    (order,) = looked(probes, now).orders
    return order


def found(probes: Probes, agent_id: str = "a1") -> Watch:
    """Return what was found of an instance that is watched."""
    watch = probes.get(agent_id)
    assert watch is not None
    return watch


def failing(probes: Probes, times: int, *, others: tuple[str, ...] = ("n2", "n3")) -> list[Verdict]:
    """Return the verdicts of failed probes in a row, one every 5 s from 0."""
    verdicts = []
    for at in range(times):
        now = at * 5.0
        order = order_of(probes, now)
        verdicts.append(probes.probed(order, "timeout", RULES, now=now, others=others))
    return verdicts


def capability(endpoint: str, protocol: str = "rest") -> Capability:
    """Return a capability that is reached there."""
    return Capability(name=endpoint or "x", protocol=protocol, endpoint=endpoint)  # type: ignore[arg-type]  # a word of Protocol


@pytest.mark.parametrize(
    ("changes", "target"),
    [
        ({}, ("tcp", "http://10.0.0.7:9/x")),
        ({"base_url": "http://b"}, ("tcp", "http://b")),
        ({"health": Health(type="http", endpoint="http://h")}, ("http", "http://h")),
        ({"health": Health(type="grpc"), "base_url": "http://b"}, ("grpc", "http://b")),
        ({"health": Health(type="none", endpoint="http://h")}, None),
        ({"capabilities": ()}, None),
        ({"capabilities": (capability("", "link"), capability("q", "pull"))}, None),
        ({"capabilities": (capability("", "link"), capability("http://r"))}, ("tcp", "http://r")),
    ],
)
def test_an_instance_is_probed_as_it_asks(
    changes: dict[str, object], target: tuple[str, str] | None
) -> None:
    """Its health endpoint, else a connect to where it is reached; nothing where it comes to us."""
    assert target_of(replace(instance("a1"), **changes)) == target


@pytest.mark.parametrize(
    ("wish_ms", "rules", "seconds"),
    [
        (None, RULES, 5.0),
        (2_000, RULES, 2.0),
        (1, RULES, 1.0),
        (10**9, RULES, 60.0),
        (1, ProbeRules(interval_ms=200), 0.2),
    ],
)
def test_an_interval_may_be_wished_for(
    wish_ms: int | None, rules: ProbeRules, seconds: float
) -> None:
    """Its own interval within bounds, or the cluster's."""
    health = Health(type="tcp", interval_ms=wish_ms) if wish_ms else None
    assert interval_seconds(instance("a1", health=health), rules) == seconds


def test_an_instance_is_probed_at_once_and_then_every_interval() -> None:
    """A new one doesn't wait; the order says what to do and for how long."""
    probes = watching("a1")
    order = order_of(probes, 0.0)
    assert order == ProbeOrder(
        agent_id="a1",
        incarnation=1,
        type="tcp",
        endpoint="http://10.0.0.7:9/x",
        timeout_seconds=2.0,
    )
    probes.probed(order, "", RULES, now=0.1, others=())
    assert due(probes, 4.9) == []
    assert due(probes, 5.0) == ["a1"]


def test_probes_are_spread() -> None:
    """An interval is a little longer or shorter by chance, so that probes drift apart."""
    for drawn, at in ((0.0, 4.5), (0.5, 5.0), (0.999, 5.499)):
        probes = watching("a1")
        draws = iter([drawn, drawn])
        order = looked(probes, 0.0, draw=draws.__next__).orders[0]
        probes.probed(order, "", RULES, now=0.0, others=())
        assert due(probes, at - 0.001) == []
        assert due(probes, at + 0.001) == ["a1"]


def test_who_can_t_be_probed_isn_t_watched() -> None:
    """An instance that comes to us, or wants no probes, takes no room; nothing is made of it."""
    probes = Probes()
    probes.watch(Instance(agent_id="a1", agent="a1"), at=0.0)
    assert len(probes) == 0
    probes.stood("a1", at=0.0)
    probes.hurry("a1", at=0.0)
    probes.forget("a1")
    assert not probes.reached("a1", at=0.0)
    assert due(probes, 10.0) == []


def test_a_new_registration_is_a_new_instance() -> None:
    """Its predecessor's failures aren't its own; the same registration again changes nothing."""
    probes = watching("a1")
    failing(probes, 2)
    probes.watch(instance("a1", incarnation=1), at=6.0)
    assert found(probes).failures == 2
    late = looked(probes, 10.0).orders[0]
    probes.watch(instance("a1", incarnation=2), at=10.0)
    assert found(probes).failures == 0
    assert probes.probed(late, "timeout", RULES, now=11.0, others=()) == Verdict()
    assert found(probes).failures == 0
    assert due(probes, 10.0) == ["a1"]


def test_a_heartbeat_stands_for_a_probe_but_once_a_minute() -> None:
    """While it beats with a good self-check it is really probed each minute and no oftener."""
    probes = watching("a1")
    real: list[float] = []
    for tick in range(260):
        now = tick / 2
        if tick % 6 == 0:
            probes.stood("a1", at=now)
        for order in looked(probes, now).orders:
            real.append(now)
            probes.probed(order, "", RULES, now=now, others=())
    assert real == [0.0, 60.0, 120.0]


def test_an_older_word_doesn_t_stand_for_a_probe() -> None:
    """What stood for a probe holds for an interval, and a late report doesn't shorten it."""
    probes = watching("a1")
    probes.probed(order_of(probes, 0.0), "", RULES, now=0.0, others=())
    probes.stood("a1", at=4.0)
    probes.stood("a1", at=2.0)
    assert due(probes, 5.0) == []
    assert due(probes, 10.0) == ["a1"]


def test_what_fails_is_probed_whatever_the_heartbeat_says() -> None:
    """A heartbeat proves the process, not the way to it."""
    probes = watching("a1")
    failing(probes, 1)
    for at in range(1, 4):
        probes.stood("a1", at=at * 5.0)
        order = order_of(probes, at * 5.0)
        probes.probed(order, "timeout", RULES, now=at * 5.0, others=("n2",))


def test_a_good_call_ends_the_failures() -> None:
    """A call that got through proves more than a probe that didn't; it is news once."""
    probes = watching("a1")
    failing(probes, 3)
    assert found(probes).reach == "failed"
    assert probes.reached("a1", at=11.0)
    assert not probes.reached("a1", at=12.0)
    assert (found(probes).reach, found(probes).failures) == ("good", 0)
    # What the last probe met stays to be seen.
    assert found(probes).fault == "timeout"
    assert due(probes, 15.0) == []
    assert due(probes, 20.0) == ["a1"]


def test_three_failures_ask_a_second_node_each_time_another() -> None:
    """Before the third nothing follows; then the others are asked in turn."""
    assert failing(watching("a1"), 5) == [
        Verdict(),
        Verdict(),
        Verdict(ask="n2"),
        Verdict(ask="n3"),
        Verdict(ask="n2"),
    ]


def test_where_the_others_aren_t_heard_nothing_follows() -> None:
    """A node that is cut off has nobody to ask and calls nobody down."""
    probes = watching("a1")
    assert failing(probes, 4, others=()) == [Verdict()] * 4
    assert found(probes).reach == "failed"


def test_a_node_alone_decides_alone() -> None:
    """Where there is no other node the third failure is enough, unless it doubts itself."""
    probes = watching("a1")
    for at, expected in ((0.0, False), (5.0, False), (10.0, True)):
        order = order_of(probes, at)
        verdict = probes.probed(order, "refused", RULES, now=at, others=(), alone_after_seconds=0.0)
        assert verdict == Verdict(is_down=expected)
    for at, expected in ((15.0, False), (DOUBT_SECONDS, True)):
        order = order_of(probes, at)
        verdict = probes.probed(
            order, "refused", RULES, now=at, others=(), alone_after_seconds=DOUBT_SECONDS
        )
        assert verdict == Verdict(is_down=expected)


def test_a_good_probe_takes_everything_back() -> None:
    """It answers: no failures, reachable, no longer down; the next failures count from one."""
    probes = watching("a1")
    failing(probes, 3)
    verdict = probes.probed(order_of(probes, 15.0), "", RULES, now=15.0, others=())
    assert verdict == Verdict(is_up=True)
    watch = found(probes)
    assert (watch.reach, watch.failures, watch.asked, watch.fault) == ("good", 0, 0, "")


def test_a_second_opinion_counts_only_while_ours_holds() -> None:
    """An opinion that comes after the instance answered, or was replaced, confirms nothing."""
    probes = watching("a1")
    assert not probes.confirmed("a1", 1)
    failing(probes, 3)
    assert probes.confirmed("a1", 1)
    assert not probes.confirmed("a1", 2)
    assert not probes.confirmed("a9", 1)
    probes.reached("a1", at=11.0)
    assert not probes.confirmed("a1", 1)


def test_an_opinion_for_another_is_a_probe_like_others() -> None:
    """It is made for the incarnation that is meant, and counts among the probes of a second."""
    probes = watching("a1")
    order = probes.second("a1", 1, RULES, now=0.0)
    assert order == looked(probes, 0.0).orders[0]
    assert probes.second("a1", 2, RULES, now=0.0) is None
    assert probes.second("a9", 1, RULES, now=0.0) is None
    for _ in range(PROBES_PER_SECOND - 2):
        assert probes.second("a1", 1, RULES, now=0.5) is not None
    assert probes.second("a1", 1, RULES, now=0.9) is None
    assert probes.second("a1", 1, RULES, now=1.0) is not None


def test_a_probe_under_way_is_not_doubled() -> None:
    """While a result is awaited none is sent after it; one that is lost is given up."""
    probes = watching("a1")
    assert due(probes, 0.0) == ["a1"]
    assert due(probes, 5.0) == []
    assert due(probes, 10.0) == []
    assert due(probes, RULES.timeout_ms / 1000 + LATE_SECONDS + 3) == ["a1"]


def test_another_node_s_instance_is_left_to_it() -> None:
    """It is looked at each interval, in case it becomes ours, and never probed."""
    probes = watching("a1")
    assert looked(probes, 0.0, is_mine=never) == Round(orders=(), lapsed=())
    assert due(probes, 4.9) == []
    assert due(probes, 5.0) == ["a1"]


def test_what_was_found_of_another_s_instance_lapses() -> None:
    """Three intervals after the last look this node says neither good nor failed of it."""
    probes = watching("a1", "b1")
    for order in looked(probes, 0.0).orders:
        probes.probed(order, "", RULES, now=0.0, others=())
    assert looked(probes, 10.0, is_mine=never).lapsed == ()
    assert looked(probes, 15.0, is_mine=never).lapsed == ("a1", "b1")
    assert (found(probes).reach, probes.judged_count) == ("", 0)
    assert looked(probes, 20.0, is_mine=never).lapsed == ()


def test_the_counts_are_of_what_was_found() -> None:
    """How many it has looked at and how many of them fail just now, at any moment."""
    probes = watching("a1", "b1", "c1")
    assert (probes.judged_count, probes.failing_count) == (0, 0)
    for at in range(3):
        for order in looked(probes, at * 5.0).orders:
            fault = "refused" if order.agent_id == "a1" else ""
            probes.probed(order, fault, RULES, now=at * 5.0, others=())
        assert (probes.judged_count, probes.failing_count) == (3, 1)
    probes.forget("b1")
    assert (probes.judged_count, probes.failing_count) == (2, 1)
    probes.reached("a1", at=16.0)
    assert (probes.judged_count, probes.failing_count, len(probes)) == (2, 0, 2)
    probes.forget("a1")
    assert (probes.judged_count, probes.failing_count, len(probes)) == (1, 0, 1)


def test_the_urgent_go_first_and_leave_room() -> None:
    """While others wait, four fifths are for the urgent; without others they get it all."""
    urgent = [f"u{at:03}" for at in range(150)]
    probes = watching(*urgent)
    assert len(due(probes, 0.0)) == PROBES_PER_SECOND
    routine = [f"r{at:03}" for at in range(150)]
    probes = watching(*routine)
    for now in (0.0, 1.0):
        for order in looked(probes, now).orders:
            probes.probed(order, "", RULES, now=now, others=())
    for agent_id in urgent:
        probes.watch(instance(agent_id, incarnation=1), at=2.0)
    told = due(probes, 7.0, is_urgent=lambda agent_id: agent_id.startswith("u"))
    kinds = [agent_id[0] for agent_id in told]
    assert (kinds.count("u"), kinds.count("r")) == (
        URGENT_PER_SECOND,
        PROBES_PER_SECOND - URGENT_PER_SECOND,
    )


def test_an_instance_can_be_hurried() -> None:
    """Whoever falls silent is probed now, not when its turn comes."""
    probes = watching("a1")
    probes.probed(order_of(probes, 0.0), "", RULES, now=0.0, others=())
    probes.hurry("a1", at=1.0)
    assert due(probes, 1.0) == ["a1"]


def test_a_turn_is_short() -> None:
    """However many instances fall due at once, one look takes a bounded part of them."""
    probes = watching(*(f"a{at:04}" for at in range(POPS_MAX + 100)))
    seen: list[str] = []

    def mine(agent_id: str) -> bool:
        seen.append(agent_id)
        return False

    looked(probes, 0.0, is_mine=mine)
    assert len(seen) == POPS_MAX
    looked(probes, 0.1, is_mine=mine)
    assert len(seen) == POPS_MAX + 100


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400), st.lists(st.floats(0.01, 0.7), min_size=5, max_size=60), st.integers())
def test_never_more_than_a_hundred_a_second(count: int, gaps: list[float], seed: int) -> None:
    """In no second, wherever it begins, are there more; and nobody waits for ever."""
    dice = random.Random(seed)
    probes = watching(*(f"a{at}" for at in range(count)))
    left: list[float] = []
    reached: set[str] = set()
    now = 0.0
    for gap in [*gaps, *([0.1] * 60)]:
        for order in looked(probes, now, draw=dice.random, is_urgent=always).orders:
            left.append(now)
            reached.add(order.agent_id)
            probes.probed(order, dice.choice(["", "timeout"]), RULES, now=now, others=("n2",))
        now += gap
    for at in left:
        assert sum(1 for other in left if at <= other < at + 1 - 1e-9) <= PROBES_PER_SECOND
    assert len(reached) == count
