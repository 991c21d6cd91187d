"""Close names, brought up to date when they are needed."""

import pytest
import trio

from reachnode.registry.changes import ChangeLog, Was
from reachnode.registry.commands import Deregister, Register
from reachnode.serve.front import Front
from reachnode.serve.names import SLICE, KnownNames
from tests.registry.test_agents import parser
from tests.serve.local_replica import LocalReplica, front_of, sights_of


async def close(names: KnownNames, front: Front, asked: str) -> tuple[str, ...]:
    """Return what is close to a name now."""
    await names.refresh(front.replica, front.sights.changes)
    return names.close_to(asked)


async def test_they_follow_the_log() -> None:
    """A name comes with the first that offers it, and goes with the last."""
    replica = LocalReplica()
    front, names = front_of(replica), KnownNames()
    assert await close(names, front, "intent.detekt") == ()
    for agent_id in ("a1", "a2"):
        await replica.propose(Register(instance=parser(agent_id, "intent.detect")), deadline=0)
    for agent_id in ("a1", "a2"):
        assert await close(names, front, "intent.detekt") == ("intent.detect",)
        await replica.propose(Deregister(agent_id=agent_id), deadline=0)
    assert await close(names, front, "intent.detekt") == ()


async def test_they_are_made_anew_after_a_snapshot() -> None:
    """What is no longer remembered is looked up."""
    replica = LocalReplica()
    front, names = front_of(replica), KnownNames()
    await replica.propose(Register(instance=parser("a1", "intent.detect")), deadline=0)
    assert await close(names, front, "intent.detekt") == ("intent.detect",)
    other = LocalReplica()
    await other.propose(Register(instance=parser("b1", "intent.detext")), deadline=0)
    replica.install(other.state, 50)
    assert await close(names, front, "intent.detekt") == ("intent.detext",)
    assert sights_of(front).changes.floor == 50


@pytest.mark.parametrize("count", [2 * SLICE + 1])
async def test_many_names_are_taken_in_slices(count: int) -> None:
    """Others get their turn, and two that need them at once wait for one another."""
    every = [f"c{at:04}" for at in range(count)]
    replica = LocalReplica()
    await replica.propose(Register(instance=parser("a1", *every)), deadline=0)
    names = KnownNames()
    turns: list[int] = []
    changes: ChangeLog[Was | None] = ChangeLog(1)

    async def others() -> None:
        while True:
            turns.append(1)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        async with trio.open_nursery() as both:
            both.start_soon(names.refresh, replica, changes)
            both.start_soon(names.refresh, replica, changes)
        nursery.cancel_scope.cancel()
    assert len(turns) >= count // SLICE
    assert names.close_to("c0007x")[0] == "c0007"
