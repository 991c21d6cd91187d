"""Updates of a watch, and their ids."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import InvalidRequest
from reachnode.model.discovery import Change, Seen
from reachnode.wire.changes import (
    PART_CHANGES_MAX,
    EventId,
    read_event_id,
    write_change,
    write_keep_alive,
    write_snapshot,
    write_update,
)
from tests.registry.test_agents import parser
from tests.routing.seen import liveness
from tests.wire.test_sse import read

LAST = EventId(epoch=1, index=7, n=0)


def seen(agent_id: str) -> Seen:
    """Return a healthy instance."""
    return Seen(instance=parser(agent_id), index=3, state="healthy", liveness=liveness(agent_id))


def deletes(count: int) -> list[Change]:
    """Return that many changes."""
    return [Change(kind="delete", agent_id=f"a{at}", seen=None) for at in range(count)]


def test_an_update_is_one_event() -> None:
    """Its id promises the index, and its data are on one line."""
    changes = [Change(kind="put", agent_id="a1", seen=seen("a1")), *deletes(1)]
    ((event_id, event),) = write_update(changes, LAST, index=9, now=10.0)
    assert event_id == EventId(epoch=1, index=9, n=0)
    ((kind, data, last_id),) = read(event)
    assert (kind, last_id) == ("change", "r-1-9-0")
    document = json.loads(data)
    assert document["index"] == 9
    assert [one["kind"] for one in document["changes"]] == ["put", "delete"]
    assert document["changes"][0]["instance"]["agent_id"] == "a1"
    assert "instance" not in document["changes"][1]


def test_a_long_update_promises_its_index_with_its_last_part() -> None:
    """Whoever loses the connection in between hears all of it again."""
    changes = deletes(2 * PART_CHANGES_MAX + 1)
    parts = list(write_update(changes, LAST, index=9, now=0.0))
    assert [str(event_id) for event_id, _ in parts] == ["r-1-7-1", "r-1-7-2", "r-1-9-0"]
    documents = [json.loads(read(event)[0][1]) for _, event in parts]
    assert [one["index"] for one in documents] == [7, 7, 9]
    told = [one["agent_id"] for document in documents for one in document["changes"]]
    assert told == [one.agent_id for one in changes]


def test_nothing_is_no_event() -> None:
    """An update without changes isn't sent."""
    assert list(write_update([], LAST, index=9, now=0.0)) == []


@pytest.mark.parametrize("count", [0, 1, PART_CHANGES_MAX, 2 * PART_CHANGES_MAX + 1])
def test_a_snapshot_holds_everything(count: int) -> None:
    """Under the id from which the changes go on; however many pieces, it is one event."""
    names = [f"a{at}" for at in range(count)]
    pieces = list(write_snapshot(map(seen, names), LAST, now=0.0))
    ((kind, data, last_id),) = read(b"".join(pieces))
    document = json.loads(data)
    assert (kind, last_id, document["index"]) == ("snapshot", "r-1-7-0", 7)
    assert [one["agent_id"] for one in document["items"]] == names


def test_a_snapshot_is_made_as_it_is_taken() -> None:
    """Nobody looks at an instance before the pieces in front of it are gone."""
    looked: list[str] = []

    def look(agent_id: str) -> Seen:
        looked.append(agent_id)
        return seen(agent_id)

    pieces = write_snapshot(map(look, map(str, range(1000))), LAST, now=0.0)
    next(pieces)
    next(pieces)
    assert len(looked) == PART_CHANGES_MAX


def test_a_keep_alive_moves_the_place_and_is_no_event() -> None:
    """A client that hears of no change for long still comes back from where the log is."""
    changes = b"".join(event for _, event in write_update(deletes(1), LAST, index=10, now=0.0))
    later = EventId(epoch=1, index=9, n=0)
    assert [last_id for _, _, last_id in read(write_keep_alive(later) + changes)] == ["r-1-10-0"]
    assert read(write_keep_alive(later)) == []


def test_a_state_comes_with_its_instance() -> None:
    """A client need not ask for it."""
    change = Change(kind="state", agent_id="a1", seen=seen("a1"))
    assert write_change(change, now=0.0)["instance"]["state"] == "healthy"


@given(st.integers(0, 10**18), st.integers(0, 10**18), st.integers(0, 10**18))
def test_an_id_is_read_as_it_was_written(epoch: int, index: int, n: int) -> None:
    """And the next one differs, at the same index and at a later one."""
    event_id = EventId(epoch=epoch, index=index, n=n)
    assert read_event_id(str(event_id)) == event_id
    assert event_id.next(index) == EventId(epoch=epoch, index=index, n=n + 1)
    assert event_id.next(index + 1) == EventId(epoch=epoch, index=index + 1, n=0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "r-1-2",
        "r-1-2-3-4",
        "l-n1-7",
        "r--1-2-3",
        "r-1-2-x",
        "r-1-2-3\n",
        "r-" + "9" * 20 + "-1-1",
    ],
)
def test_another_id_is_refused(text: str) -> None:
    """An id of another stream isn't resumed from."""
    with pytest.raises(InvalidRequest, match="no id of this stream"):
        read_event_id(text)


def test_an_id_never_goes_back() -> None:
    """No older state is promised after a newer one."""
    with pytest.raises(AssertionError):
        LAST.next(6)
