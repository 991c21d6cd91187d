"""A replica without consensus: it applies what is proposed at once, in one process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import trio

from reachnode.model.address import Address
from reachnode.model.membership import MemberStatus, ReplicaStatus, Unknown
from reachnode.peers.raft.arrivals import Follower
from reachnode.registry.apply import apply
from reachnode.registry.codec import (
    decode_envelope,
    decode_outcome,
    encode_envelope,
    encode_outcome,
)
from reachnode.registry.commands import Command, Envelope, ReplaceMember
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import State, genesis
from reachnode.serve.conversation import Conversation, WaitingRoom
from reachnode.serve.front import About, Front
from reachnode.serve.ports import Fate
from tests.fakes import MemoryStream, SeededSources, stream_pair
from tests.serve.local_sights import LocalSights

ALONE = ReplicaStatus(
    member_id="n1",
    cluster_id="c",
    phase="running",
    role="leader",
    leader="n1",
    term=3,
    index=0,
    commit_index=0,
    log_first=1,
    log_last=0,
    synced_index=0,
    quorum=True,
    contact_age_seconds=0.0,
    disk="ok",
    level=1,
    members=(MemberStatus(id="n1", address="h:1", role="leader", alive=True, index=0, lag_ms=0),),
    counters={"leader_changes_total": 1, "appends": 7},
    founding_waits_for=(),
)

OTHER = MemberStatus(id="n2", address="h:2", role="follower", alive=True, index=0, lag_ms=20)
PAIR = replace(ALONE, members=(*ALONE.members, OTHER))
"""As if there were another member."""


@dataclass
class Arriving:
    """Where followers join."""

    followers: list[Follower] = field(default_factory=list)


@dataclass
class LocalReplica:
    """Keeps the promises of `node.ports.FollowedReplica` for a cluster of one."""

    state: State = field(default_factory=lambda: genesis("c", {"n1": "d1"}))
    applied_index: int = 0
    now: ReplicaStatus = ALONE
    """What `status` says, its indexes aside."""
    answers: Fate | None = None
    """What changes and fences are answered instead of being applied."""
    takes_over: bool = False
    """Whether another member is ready to lead; else handing over never ends."""
    proposed: list[tuple[Command, float, str | None]] = field(default_factory=list)
    arrivals: Arriving = field(default_factory=Arriving)

    def status(self) -> ReplicaStatus:
        at = self.applied_index
        return replace(self.now, index=at, commit_index=at, log_last=at, synced_index=at)

    async def propose(
        self, command: Command, *, deadline: float, request_id: str | None = None
    ) -> Fate:
        await trio.lowlevel.checkpoint()
        self.proposed.append((command, deadline, request_id))
        if self.answers is not None:
            return self.answers
        index = self.applied_index + 1
        envelope = Envelope(
            request_id=request_id or f"own-{index}", since_index=self.applied_index, command=command
        )
        # Through its bytes: what can't be written to a log is no change.
        before = self.state
        self.state, outcome = apply(before, index, decode_envelope(encode_envelope(envelope)))
        self.applied_index = index
        self.tell(before, (command,))
        return decode_outcome(encode_outcome(outcome))

    def install(self, state: State, index: int) -> None:
        """Go on from a snapshot."""
        before, self.state, self.applied_index = self.state, state, index
        self.tell(before, None)

    def tell(self, before: State, commands: tuple[Command, ...] | None) -> None:
        """Tell the followers."""
        for follower in self.arrivals.followers:
            follower.followed(self.applied_index, before, self.state, commands)

    async def read_fence(self, *, deadline: float) -> int | Refused | Unknown:
        await trio.lowlevel.checkpoint()
        return self.applied_index if self.answers is None else no_fence(self.answers)

    async def wait_applied(self, index: int, *, deadline: float) -> bool:
        while self.applied_index < index:
            if trio.current_time() >= deadline:
                return False
            await trio.sleep(0.01)
        return True

    async def replace_member(self, member_id: str, deadline: float) -> Fate:
        command = ReplaceMember(member_id=member_id, incarnation="d2")
        return await self.propose(command, deadline=deadline)

    async def transfer_leadership(self) -> bool:
        if not self.takes_over:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        self.now = replace(self.now, role="follower", leader="n2")
        return True


def no_fence(answers: Fate) -> Refused | Unknown:
    """Return a fate that can stand for a fence."""
    assert not isinstance(answers, Applied)
    return answers


def front_of(replica: LocalReplica, counters: Mapping[str, int] | None = None) -> Front:
    """Return the front of a node n1."""
    sources = SeededSources()
    return Front(
        about=About(
            node_id="n1",
            client_address=str(Address("127.0.0.1", 7400)),
            version="0.0.1",
            listens_on_loopback=True,
        ),
        replica=replica,
        sights=LocalSights(replica.state, replica.applied_index, replica.arrivals, sources),
        sources=sources,
        link_counters=lambda: counters or {},
    )


def sights_of(front: Front) -> LocalSights:
    """Return what the node of such a front makes of instances."""
    assert isinstance(front.sights, LocalSights)
    return front.sights


def talk(
    nursery: trio.Nursery,
    front: Front,
    waiting: WaitingRoom | None = None,
    *,
    closes: bool = False,
    room_bytes: int = 1 << 16,
) -> MemoryStream:
    """Return the client's end of a conversation with a front."""
    client, server = stream_pair(room_bytes)
    conversation = Conversation(
        front,
        server,
        must_close=lambda: closes,
        waiting=WaitingRoom() if waiting is None else waiting,
    )

    async def run() -> None:
        try:
            await conversation.run()
        finally:
            await server.aclose()

    nursery.start_soon(run)
    return client
