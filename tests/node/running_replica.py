"""A replica without consensus that is run like the real one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import trio

from reachnode.model.address import Address
from reachnode.peers.switchboard import Switchboard
from tests.serve.local_replica import LocalReplica

PEER_ADDRESS = Address("127.0.0.1", 7401)


@dataclass
class RunningReplica(LocalReplica):
    """Keeps the promises of `node.ports.RunningReplica` for a cluster of one."""

    fault: BaseException | None = None
    """Raised once `breaks` is set."""
    breaks: trio.Event = field(default_factory=trio.Event)
    transfers_count: int = 0
    switchboard: Switchboard = field(default_factory=Switchboard)

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        task_status.started(PEER_ADDRESS)
        await self.breaks.wait()
        assert self.fault is not None
        raise self.fault

    def link_counters(self) -> Mapping[str, int]:
        return {"accepted": 3}

    async def transfer_leadership(self) -> bool:
        self.transfers_count += 1
        return await super().transfer_leadership()
