"""Who wants to know when this node has applied something."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from reachnode.peers.raft.arrivals import Arrivals
from reachnode.peers.raft.machine import Machine
from reachnode.peers.raft.opening import NO_OP, REGULAR
from reachnode.registry.codec import encode_batch, encode_envelope
from reachnode.registry.commands import Advance, Command, Envelope
from reachnode.registry.state import State, genesis


class Shadow:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, int, tuple[Command, ...] | None]] = []

    def followed(
        self, index: int, before: State, after: State, commands: tuple[Command, ...] | None
    ) -> None:
        """Note an entry with the cluster times before and after it."""
        self.told.append((index, before.time_ms, after.time_ms, commands))


def advance(by_ms: int) -> bytes:
    """Return an entry that moves cluster time."""
    command = Advance(by_ms=by_ms)
    return REGULAR + encode_batch(
        [encode_envelope(Envelope(request_id=f"t{by_ms}", since_index=1, command=command))]
    )


def machine() -> Machine:
    """Return a machine at the first index."""
    return Machine(genesis("c", {"n1": "d1"}), index=1, digest_every=1000)


def test_a_follower_sees_every_entry_with_both_states() -> None:
    """Also those that change nothing, and a snapshot, which may have changed all."""
    arrivals, one, shadow = Arrivals(), machine(), Shadow()
    arrivals.followers.append(shadow)
    for command in (advance(5), NO_OP, advance(7)):
        one.apply(command)
        arrivals.arrived(one)
    later = machine()
    later.apply(advance(99))
    one.install(later.state, 9)
    arrivals.arrived(one)
    assert shadow.told == [
        (2, 0, 5, (Advance(by_ms=5),)),
        (3, 5, 5, ()),
        (4, 5, 12, (Advance(by_ms=7),)),
        (9, 12, 99, None),
    ]


async def test_a_waiter_is_woken_at_its_index() -> None:
    """And no sooner."""
    arrivals, one = Arrivals(), machine()
    woken: list[int] = []

    async def wait(index: int) -> None:
        await arrivals.wait(index, deadline=trio.current_time() + 60)
        woken.append(index)

    async with trio.open_nursery() as nursery:
        for index in (2, 3):
            nursery.start_soon(wait, index)
        await wait_all_tasks_blocked()
        one.apply(advance(1))
        arrivals.arrived(one)
        await wait_all_tasks_blocked()
        assert woken == [2]
        one.apply(NO_OP)
        arrivals.arrived(one)
    assert woken == [2, 3]


async def test_nobody_waits_beyond_a_deadline(autojump_clock: MockClock) -> None:
    """What is never applied leaves nothing behind."""
    arrivals = Arrivals()
    await arrivals.wait(10**9, deadline=trio.current_time() + 5)
    assert autojump_clock.current_time() == 5
    arrivals.arrived(machine())
