"""Three real nodes of reachnode: started, asked, killed, compared."""

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from sim.live.client import Answer, Connection, Lost, Place, request_bytes
from sim.live.processes import Process, free_ports

ASK_SECONDS = 10.0
LOOK_SECONDS = 0.02
"""Between two looks at something that has not come yet."""


class TooLate(Exception):
    """Something did not come in its time."""


@dataclass(slots=True, kw_only=True)
class LiveNode:
    """One node's process and where its clients connect."""

    name: str
    place: Place
    process: Process

    async def ask(self, method: str, path: str, document: Any = None) -> Answer:
        """Return one answer, over a connection of its own.

        Raises:
            Lost: There was none in time.
        """
        connection = Connection(self.place)
        try:
            with trio.fail_after(ASK_SECONDS):
                return await connection.ask(request_bytes(method, path, document))
        except trio.TooSlowError:
            raise Lost(f"{self.name} did not answer in time") from None
        finally:
            connection.close()

    async def status(self) -> dict[str, Any] | None:
        """Return what the node says of itself, None when it doesn't answer."""
        try:
            answer = await self.ask("GET", "/api/v1/cluster")
            found: dict[str, Any] = answer.document()
        except Lost:
            return None
        return found if answer.status == 200 else None


class LiveCluster:
    """Nodes of one cluster, their data below one directory.

    Args:
        directory: Where everything is kept.
        count: How many voters.
        environment: Settings by variable, the same for every node.
    """

    def __init__(
        self, directory: Path, *, count: int = 3, environment: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory
        secret = directory / "secret"
        secret.write_text(secrets.token_hex(32) + "\n")
        ports = free_ports(2 * count)
        names = [f"n{number}" for number in range(1, count + 1)]
        peers = ",".join(
            f"{name}=127.0.0.1:{port}" for name, port in zip(names, ports[count:], strict=True)
        )
        self.nodes = [
            LiveNode(
                name=name,
                place=Place(host="127.0.0.1", port=port),
                process=Process(
                    name=name,
                    argv=(
                        *(sys.executable, "-m", "reachnode", "serve", "--node-id", name),
                        *("--data-dir", str(directory / name), "--listen", f"127.0.0.1:{port}"),
                        *("--peers", peers, "--cluster-secret-file", str(secret)),
                        *("--log-format", "json"),
                    ),
                    log=directory / f"{name}.log",
                    environment=environment or {},
                ),
            )
            for name, port in zip(names, ports[:count], strict=True)
        ]

    async def start(self, *, seconds: float = 60.0) -> None:
        """Start every node and wait until there is a leader that all of them follow.

        Raises:
            TooLate: There was none in time.
        """
        for node in self.nodes:
            node.process.start()
        for node in self.nodes:
            with within(seconds, f"{node.name} did not begin to listen"):
                await node.process.first_line()
        await self.agreed(seconds=seconds)

    def end(self) -> None:
        """Kill whatever still runs."""
        for node in self.nodes:
            node.process.collect()
            if node.process.running is not None:
                node.process.kill()

    async def agreed(self, *, seconds: float) -> LiveNode:
        """Return the leader, once every node names the same one and is in contact.

        Raises:
            TooLate: They did not agree in time.
        """
        with within(seconds, "the nodes did not agree on a leader"):
            while True:
                found = [await node.status() for node in self.nodes]
                leaders = {one["leader"] if one else None for one in found}
                if len(leaders) == 1 and all(one and one["quorum"] for one in found):
                    leader = leaders.pop()
                    for node in self.nodes:
                        if node.name == leader:
                            return node
                await trio.sleep(LOOK_SECONDS)

    async def leader(self) -> LiveNode | None:
        """Return the node that says it leads now, None when none does."""
        for node in self.nodes:
            said = await node.status() if node.process.is_alive else None
            if said is not None and said["role"] == "leader" and said["quorum"]:
                return node
        return None

    async def tables(self, index: int, *, seconds: float) -> dict[str, dict[str, Any]]:
        """Return every node's instances by id, once it has applied an index.

        Raises:
            TooLate: A node did not get there.
        """
        found: dict[str, dict[str, Any]] = {}
        for node in self.nodes:
            with within(seconds, f"{node.name} did not get to index {index}"):
                found[node.name] = await whole_table(node, index)
        return found

    async def equal_indexes(self, *, seconds: float) -> int:
        """Return the index that every node has applied, once they have the same.

        Raises:
            TooLate: They did not come to the same.
        """
        with within(seconds, "the nodes did not come to the same index"):
            while True:
                found = [await node.status() for node in self.nodes]
                indexes = {one["index"] if one else None for one in found}
                if len(indexes) == 1 and None not in indexes:
                    return int(indexes.pop() or 0)
                await trio.sleep(LOOK_SECONDS)


async def whole_table(node: LiveNode, index: int) -> dict[str, Any]:
    """Return a node's instances by id, all of them at one index or later."""
    found: dict[str, Any] = {}
    cursor: str | None = ""
    while cursor is not None:
        path = f"/api/v1/agents?min_index={index}&cursor={cursor}"
        try:
            answer = await node.ask("GET", path)
        except Lost:
            await trio.sleep(LOOK_SECONDS)
            continue
        if answer.status != 200:
            await trio.sleep(LOOK_SECONDS)
            continue
        page = answer.document()
        found |= {item["agent_id"]: item for item in page["items"]}
        cursor = page["next"]
    return found


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Bound what happens inside in time.

    Raises:
        TooLate: It was not done; `what` says what did not happen.
    """
    with trio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TooLate(f"{what} within {seconds:g} s")
