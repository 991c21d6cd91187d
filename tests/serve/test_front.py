"""What a node knows of itself."""

from dataclasses import replace

import trio

from tests.serve.local_replica import ALONE, LocalReplica, front_of


async def test_the_age_of_what_is_known(autojump_clock: trio.testing.MockClock) -> None:
    """It is the replica's; without any contact it is the time since the start."""
    replica = LocalReplica(now=replace(ALONE, contact_age_seconds=0.25))
    front = front_of(replica)
    assert front.stale_ms() == 250
    replica.now = replace(ALONE, contact_age_seconds=None)
    await trio.sleep(2)
    assert front.stale_ms() == 2000
