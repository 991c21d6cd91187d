"""The shared settings over HTTP."""

from typing import Any

import pytest

from tests.serve.client import ask
from tests.serve.local_replica import LocalReplica, front_of

PATH = "/api/v1/settings"


async def test_settings_are_shown_and_put_whole() -> None:
    """What GET answers can be edited and put back; what is left out returns to its default."""
    front = front_of(LocalReplica())
    shown = await ask(front, "GET", PATH)
    assert (shown.json["revision"], shown.headers["etag"]) == (0, '"0"')
    document = shown.json
    document["probes"]["failures"] = 5
    put = await ask(front, "PUT", PATH, document)
    assert (put.status, put.json["revision"], put.headers["etag"]) == (200, 1, '"1"')
    again = await ask(front, "GET", PATH)
    assert again.json == {**document, "revision": 1, "index": 1}
    await ask(front, "PUT", PATH, {})
    assert (await ask(front, "GET", PATH)).json["probes"]["failures"] == 3


@pytest.mark.parametrize("guard", ["0", '"0"'])
async def test_a_guard_keeps_a_change_that_came_between(guard: str) -> None:
    """`If-Match` takes the revision quoted or bare, and refuses once it is old."""
    front = front_of(LocalReplica())
    document = {"probes": {"failures": 4}}
    assert (await ask(front, "PUT", PATH, document, If_Match=guard)).status == 200
    got = await ask(front, "PUT", PATH, {}, If_Match=guard)
    assert (got.status, got.json["code"]) == (412, "revision_conflict")
    got = await ask(front, "PUT", PATH, {"revision": 0})
    assert (got.status, got.json["code"]) == (412, "revision_conflict")
    assert (await ask(front, "PUT", PATH, {"revision": 1}, If_Match="1")).status == 200


@pytest.mark.parametrize(
    ("document", "headers", "why"),
    [
        ({"probe": {}}, {}, "probe is unknown; did you mean probes?"),
        ({"probes": {"failures": "x"}}, {}, "probes.failures: Expected"),
        ({"probes": {"failures": 0}}, {}, "probes.failures: 0 isn't"),
        ({"revision": "1"}, {}, "revision must be"),
        ({"revision": True}, {}, "revision must be"),
        ({"revision": 10**30}, {}, "revision must be"),
        ({"revision": 1}, {"If_Match": "2"}, "If-Match says revision 2, the body 1"),
        ({}, {"If_Match": "x"}, "If-Match must be"),
        ([], {}, "must be a JSON object"),
    ],
)
async def test_a_wrong_document_leaves_the_old_one(
    document: Any, headers: dict[str, str], why: str
) -> None:
    """The place is named and nothing is proposed."""
    replica = LocalReplica()
    got = await ask(front_of(replica), "PUT", PATH, document, **headers)
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert why in got.json["detail"]
    assert replica.proposed == []
