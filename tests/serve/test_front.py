"""What a node knows of itself."""

from dataclasses import replace

import pytest
import trio

from reachnode.model.membership import ReplicaStatus
from tests.serve.client import ask
from tests.serve.local_replica import ALONE, OTHER, PAIR, LocalReplica, front_of


async def test_the_age_of_what_is_known(autojump_clock: trio.testing.MockClock) -> None:
    """It is the replica's; without any contact it is the time since the start."""
    replica = LocalReplica(now=replace(ALONE, contact_age_seconds=0.25))
    front = front_of(replica)
    assert front.stale_ms() == 250
    replica.now = replace(ALONE, contact_age_seconds=None)
    await trio.sleep(2)
    assert front.stale_ms() == 2000


class LateReplica(LocalReplica):
    """A replica whose journal holds three entries that are not applied yet."""

    log_last = 3

    def status(self) -> ReplicaStatus:
        return replace(super().status(), log_last=max(self.log_last, self.applied_index))


@pytest.mark.parametrize(
    ("query", "status"), [("", 503), ("?consistency=stale", 200), ("?consistency=consistent", 200)]
)
async def test_a_node_that_just_started_holds_back(query: str, status: int) -> None:
    """Until what its disk held is applied, only those who ask otherwise are answered."""
    replica = LateReplica(now=replace(ALONE, contact_age_seconds=None))
    front = front_of(replica)
    assert (await ask(front, "GET", f"/api/v1/agents{query}")).status == status
    replica.now = ALONE
    assert (await ask(front, "GET", f"/api/v1/agents{query}")).status == status
    assert (await ask(front, "GET", "/ready")).status == 503
    replica.applied_index = 3
    assert (await ask(front, "GET", f"/api/v1/agents{query}")).status == 200
    assert (await ask(front, "GET", "/ready")).status == 200
    replica.now = replace(ALONE, contact_age_seconds=None)
    assert not front.is_catching_up()


async def test_a_node_that_finds_no_leader_answers_in_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Cut off from its start on, it serves what it knows; an empty table it never serves."""
    replica = LateReplica(now=replace(ALONE, contact_age_seconds=None))
    front = front_of(replica)
    await trio.sleep(4.9)
    assert front.is_catching_up()
    await trio.sleep(0.1)
    replica.now = replace(replica.now, phase="loading")
    assert front.is_catching_up()
    replica.now = replace(replica.now, phase="running")
    assert not front.is_catching_up()


def test_somebody_else_may_be_alive() -> None:
    """A node alone, or with dead peers, has nobody to hand over to."""
    replica = LocalReplica()

    async def is_anybody() -> bool:
        return front_of(replica).others_alive()

    assert not trio.run(is_anybody)
    replica.now = replace(PAIR, members=(*ALONE.members, replace(OTHER, alive=False)))
    assert not trio.run(is_anybody)
    replica.now = PAIR
    assert trio.run(is_anybody)
