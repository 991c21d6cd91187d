"""A node to ask: the real client port on a free port, over a replica without consensus."""

import threading
from collections.abc import Iterator

import pytest
import trio

from reachnode.model.address import Address
from reachnode.serve.listener import ClientPort
from reachnode.world.network import SystemNetwork
from tests.node.kept_logs import kept_logs_fixture
from tests.serve.local_replica import LocalReplica, front_of

__all__ = ["LiveNode", "kept_logs_fixture"]


class LiveNode:
    """A client port in a thread of its own."""

    def __init__(self) -> None:
        self.replica = LocalReplica()
        self.address = Address("127.0.0.1", 0)
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,))
        self._thread.start()
        assert self._is_up.wait(10)

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://{self.address}"

    async def _run(self) -> None:
        listener = await SystemNetwork().listen(self.address)
        self.address = listener.address
        self._port = ClientPort(front_of(self.replica), listener, drain_seconds=1)
        self._token = trio.lowlevel.current_trio_token()
        self._is_up.set()
        await self._port.run()

    def stop(self) -> None:
        """End it and its thread."""
        if self._thread.is_alive():
            self._token.run_sync_soon(self._port.stop)
            self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture(name="node")
def node_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveNode]:
    """Give a node that commands ask when they are told nothing else."""
    node = LiveNode()
    monkeypatch.setenv("REACHNODE_NODES", node.url)
    yield node
    node.stop()


@pytest.fixture(name="second")
def second_fixture() -> Iterator[LiveNode]:
    """Give another node, of a cluster of its own."""
    node = LiveNode()
    yield node
    node.stop()
