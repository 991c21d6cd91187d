"""Replicas for tests: real ones, with data directories, in one process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from reachnode.model.address import Address
from reachnode.peers.link import LinkSettings
from reachnode.peers.raft.replica import Replica, Surroundings
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.secrets import ClusterSecrets
from reachnode.registry.commands import Advance
from reachnode.registry.outcomes import Applied
from reachnode.world.files import Files, SystemFiles
from reachnode.world.network import Listener, Network, Stream, SystemNetwork
from reachnode.world.sources import Sources
from tests.fakes import SeededSources

SECRETS = ClusterSecrets(b"s" * 32)
PLACES = {member: Address(member, 7401) for member in ("n1", "n2", "n3")}
THREADS_SECONDS = 0.005
"""How long real time may go on before the virtual one jumps: disk work is done in threads."""
PATIENCE_SECONDS = 60.0


class OwnSources(SeededSources):
    """Ids that no other process has, and dice of one's own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.draw.seed(name)

    def new_id(self) -> str:
        """Return 32 hexadecimal digits."""
        return f"{self.draw.getrandbits(128):032x}"


class LoopbackNetwork:
    """The system's network, where each address stands for a port that was free."""

    def __init__(self) -> None:
        self._real: dict[Address, Address] = {}
        self._network = SystemNetwork()

    async def listen(self, address: Address) -> Listener:
        """Return a listener at any free port."""
        listener = await self._network.listen(Address("127.0.0.1", 0))
        self._real[address] = listener.address
        return listener

    async def connect(self, address: Address, timeout_seconds: float) -> Stream:
        """Return a connection to whoever listens there."""
        if address not in self._real:
            raise ConnectionRefusedError(f"nobody listens on {address}")
        return await self._network.connect(self._real[address], timeout_seconds)


class Process:
    """One replica's process, which can be ended and started again."""

    def __init__(
        self,
        me: str,
        network: Network,
        directory: Path | Files,
        *,
        places: Mapping[str, Address] = PLACES,
        sources: Sources | None = None,
        raft: RaftSettings | None = None,
    ) -> None:
        self.me = me
        self.directory = directory
        self._boots_count = 0
        self._network = network
        self._places = places
        self._sources = sources
        self._raft = raft or RaftSettings()

    def _begin(self) -> Files:
        """Make a new replica on the directory."""
        self._boots_count += 1
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        files: Files
        if isinstance(self.directory, Path):
            files = real = SystemFiles(self.directory)
            real.lock()
        else:
            files = self.directory
        self.replica = Replica(
            Surroundings(
                me=self.me,
                members=self._places,
                listen=self._places[self.me],
                files=files,
                network=self._network,
                sources=self._sources or OwnSources(f"{self.me} {self._boots_count} {id(self)}"),
                secrets=SECRETS,
                raft=self._raft,
                link=LinkSettings(),
            )
        )
        return files

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run until stopped."""
        files = self._begin()
        try:
            with self.scope:
                await self.replica.run(task_status=task_status)
        finally:
            files.close()
            self.ended.set()

    async def stop(self) -> None:
        """End the process."""
        self.scope.cancel()
        await self.ended.wait()


def deadline(seconds: float = PATIENCE_SECONDS) -> float:
    """Return a time in a while."""
    return trio.current_time() + seconds


async def settled(process: Process) -> int:
    """Return an index at which a process reads linearizably, once there is a leader."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            read = await process.replica.read_fence(deadline=deadline())
            if isinstance(read, int):
                return read


async def advanced(process: Process, by_ms: int = 1) -> Applied:
    """Propose a change until it is applied, and return where."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            fate = await process.replica.propose(Advance(by_ms=by_ms), deadline=deadline())
            if isinstance(fate, Applied):
                return fate


def leader_of(processes: Mapping[str, Process]) -> Process:
    """Return the process that leads."""
    (leader,) = [one for one in processes.values() if one.replica.status().role == "leader"]
    return leader


@asynccontextmanager
async def cluster(
    network: Network, root: Path, *, sources: Sources | None = None
) -> AsyncIterator[tuple[dict[str, Process], trio.Nursery]]:
    """Run three processes while a test looks at them."""
    processes = {me: Process(me, network, root / me, sources=sources) for me in PLACES}
    async with trio.open_nursery() as nursery:
        for process in processes.values():
            await nursery.start(process.run)
        yield processes, nursery
        nursery.cancel_scope.cancel()
