"""The judge of real runs sees what it is there to see."""

from dataclasses import replace
from typing import Any

from sim.live.verdict import judge
from sim.live.writers import Change, Confirmed, History


def confirmed(number: int, agent_id: str, *, index: int | None = None) -> Confirmed:
    """Return the change that was applied as number so, asked and confirmed in turn."""
    return Confirmed(
        change=Change(key=f"k{number}", agent_id=agent_id, value=f"k{number}"),
        index=10 + number if index is None else index,
        incarnation=number,
        asked_at=number - 0.5,
        confirmed_at=float(number),
    )


def record(one: Confirmed) -> dict[str, Any]:
    """Return what a node shows of a change."""
    return {
        "agent_id": one.change.agent_id,
        "incarnation": one.incarnation,
        "index": one.index,
        "metadata": {"tags": {"value": one.change.value}},
    }


A1, B2, A3, LAST = confirmed(1, "a"), confirmed(2, "b"), confirmed(3, "a"), confirmed(4, "last")
TABLE = {"a": record(A3), "b": record(B2), "last": record(LAST)}
NODES = {"n1": TABLE, "n2": dict(TABLE), "n3": dict(TABLE)}


def history(*changes: Confirmed) -> History:
    """Return what clients were told."""
    return History(confirmed=list(changes))


def test_a_run_that_kept_everything_is_clean() -> None:
    """Each confirmed once, in the log's order, the same everywhere."""
    assert judge(history(A1, B2, A3, LAST), NODES).is_clean


def test_a_missing_agent_is_lost() -> None:
    """It was confirmed, and no node shows it."""
    table = {"a": record(A3), "last": record(LAST)}
    verdict = judge(history(A1, B2, A3, LAST), {"n1": table})
    assert verdict.lost == ("b is not there, but k2 was confirmed",)


def test_an_older_value_is_lost() -> None:
    """The agent is there, as it was before its last confirmed change."""
    verdict = judge(history(A1, B2, A3, LAST), {"n1": TABLE | {"a": record(A1)}})
    assert verdict.lost == ("a shows k1 (incarnation 1, index 11), not k3",)


def test_the_right_value_of_another_application_is_lost() -> None:
    """The same value under another index was not what was confirmed."""
    other = record(A3) | {"index": 99}
    assert judge(history(A1, B2, A3, LAST), {"n1": TABLE | {"a": other}}).lost


def test_a_later_change_that_was_left_open_explains_a_value() -> None:
    """It may have happened; any other value may not."""
    later = Confirmed(
        change=Change(key="k9", agent_id="a", value="k9"),
        index=20,
        incarnation=5,
        asked_at=3.5,
        confirmed_at=0.0,
    )
    last = confirmed(6, "last")
    table = TABLE | {"a": record(later), "last": record(last)}
    told = history(A1, B2, A3, LAST, last)
    assert judge(told, {"n1": table}).lost
    told.open["k9"] = later.change
    assert judge(told, {"n1": table}).is_clean


def test_more_applications_than_changes_are_doubled() -> None:
    """The last incarnation counts them: every one that no change accounts for."""
    last = confirmed(6, "last")
    told = history(A1, B2, A3, last)
    table = TABLE | {"last": record(last)}
    assert len(judge(told, {"n1": table}).doubled) == 2
    told.open["k9"] = Change(key="k9", agent_id="c", value="k9")
    assert len(judge(told, {"n1": table}).doubled) == 1


def test_fewer_applications_than_confirmations_are_lost() -> None:
    """A table that went back forgets how many there were."""
    low = replace(LAST, incarnation=3, index=14)
    verdict = judge(history(A1, B2, A3, low), {"n1": TABLE | {"last": record(low)}})
    assert "4 confirmed, 3 applied" in verdict.lost
    assert verdict.doubled == ("k3 and k4 were both told incarnation 3",)


def test_nodes_that_differ_are_unequal() -> None:
    """Whichever way: another value, one too many, one missing."""
    for other in (TABLE | {"a": record(A1)}, TABLE | {"c": record(A1)}, {"a": record(A3)}):
        assert judge(history(A1, B2, A3, LAST), NODES | {"n2": other}).unequal


def test_an_order_nobody_could_have_seen_is_noticed() -> None:
    """The log's order is that of incarnations, and agrees with real time."""
    falling = replace(A3, index=11)
    table = TABLE | {"a": record(falling)}
    assert judge(history(A1, B2, falling, LAST), {"n1": table}).disordered
    early = replace(B2, asked_at=3.5, confirmed_at=3.6)  # Behind A3, and yet before it.
    assert judge(history(A1, early, A3, LAST), NODES).disordered


def test_a_repeat_that_was_told_otherwise_is_noticed() -> None:
    """What a repeat is told must be what the first was told."""
    told = history(A1, B2, A3, LAST)
    told.contradicted.append("k1: first index 11, then index 12")
    assert judge(told, NODES).disordered == ("k1: first index 11, then index 12",)
