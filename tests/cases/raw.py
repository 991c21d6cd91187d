"""A raw client: it writes the bytes a case shows, and reads exactly what comes back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from reachnode.serve.front import Front
from tests.fakes import MemoryStream
from tests.serve.client import Got, read_answer
from tests.serve.local_replica import LocalReplica, front_of, talk

HEAD_END = b"\r\n\r\n"


class RawClient:
    """One connection to a front, and what was proposed through it."""

    def __init__(self, stream: MemoryStream, front: Front, replica: LocalReplica) -> None:
        self.stream = stream
        self.front = front
        self.replica = replica
        self._buffer = b""

    async def send(self, data: bytes, *, step: int = 0) -> None:
        """Send bytes, in pieces of `step` bytes if it is given."""
        for at in range(0, len(data), step or len(data)):
            await self.stream.send(data[at : at + (step or len(data))])
            if step:
                await trio.testing.wait_all_tasks_blocked()

    async def _until(self, size: int) -> None:
        while len(self._buffer) < size:
            piece = await self.stream.receive(65536)
            assert piece, f"the connection ended behind {self._buffer!r}"
            self._buffer += piece

    async def answer(self, *, is_head: bool = False) -> Got:
        """Return the next answer, its body read by its length."""
        while HEAD_END not in self._buffer:
            await self._until(len(self._buffer) + 1)
        size = self._buffer.index(HEAD_END) + len(HEAD_END)
        head = read_answer(self._buffer[:size])
        if not is_head:
            size += int(head.headers.get("content-length", "0"))
        await self._until(size)
        got, self._buffer = read_answer(self._buffer[:size]), self._buffer[size:]
        return got

    async def rest(self) -> bytes:
        """Return whatever else comes before the connection ends."""
        while piece := await self.stream.receive(65536):
            self._buffer += piece
        return self._buffer


@asynccontextmanager
async def connected() -> AsyncIterator[RawClient]:
    """Give a client of a node of its own, and close it at the end."""
    replica = LocalReplica()
    front = front_of(replica)
    async with trio.open_nursery() as nursery:
        client = RawClient(talk(nursery, front), front, replica)
        yield client
        await client.stream.aclose()
