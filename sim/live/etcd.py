"""Three real members of etcd, to compare with: same machine, same disk, its own defaults.

It is asked over HTTP and JSON like reachnode, through the gateway that comes with it.
"""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import trio

from sim.live.client import Answer, Connection, Lost, Place, request_bytes
from sim.live.cluster import ASK_SECONDS, LOOK_SECONDS, LiveNode, within
from sim.live.contenders import registration
from sim.live.processes import Process, free_ports

SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where administrators' programs live that a user's PATH leaves out."""


def find_etcd() -> str | None:
    """Return the path of etcd, None where it isn't installed."""
    return shutil.which("etcd", path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_DIRECTORIES}")


def etcd_version(program: str) -> str:
    """Return what etcd says its version is."""
    said = subprocess.run(  # noqa: S603 - a program found on the path
        [program, "--version"], capture_output=True, check=True, text=True
    )
    return said.stdout.splitlines()[0].removeprefix("etcd Version: ").strip()


class Etcd:
    """Members of one cluster, their data below one directory.

    Args:
        program: Path of etcd.
        directory: Where everything is kept.
        count: How many members.
    """

    name = "etcd"

    def __init__(self, program: str, directory: Path, *, count: int = 3) -> None:
        self.version = etcd_version(program)
        ports = free_ports(2 * count)
        names = [f"m{number}" for number in range(1, count + 1)]
        peers = [f"http://127.0.0.1:{port}" for port in ports[count:]]
        listed = ",".join(f"{name}={peer}" for name, peer in zip(names, peers, strict=True))
        self.nodes = []
        for name, port, peer in zip(names, ports, peers, strict=False):
            place = Place(host="127.0.0.1", port=port)
            argv = (
                *(program, "--name", name, "--data-dir", str(directory / name)),
                *("--listen-client-urls", place.url, "--advertise-client-urls", place.url),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", listed, "--initial-cluster-state", "new"),
                *("--initial-cluster-token", directory.name, "--logger", "zap"),
                *("--log-outputs", "stderr", "--log-level", "warn"),
            )
            process = Process(name=name, argv=argv, log=directory / f"{name}.log", says_ready=False)
            self.nodes.append(LiveNode(name=name, place=place, process=process))

    async def start(self) -> None:
        """Start every member and wait for a leader that all of them follow."""
        for node in self.nodes:
            node.process.start()
        await self.agreed(seconds=60.0)

    def end(self) -> None:
        """Kill whatever still runs."""
        for node in self.nodes:
            node.process.collect()
            if node.process.running is not None:
                node.process.kill()

    async def agreed(self, *, seconds: float) -> LiveNode:
        """Return the leader, once every member names the same one.

        Raises:
            TooLate: They did not agree in time.
        """
        with within(seconds, "etcd's members did not agree on a leader"):
            while True:
                found = [await status(node.place) for node in self.nodes]
                leaders = {said.get("leader") for said in found}
                if len(leaders) == 1 and None not in leaders:
                    leader = leaders.pop()
                    for node, said in zip(self.nodes, found, strict=True):
                        if said["header"]["member_id"] == leader:
                            return node
                await trio.sleep(LOOK_SECONDS)

    def change(self, name: str, agent_id: str) -> bytes:
        """Return a request that puts a registration under a key."""
        document = json.dumps(registration(name, agent_id)).encode()
        pair = {"key": coded(f"agents/{agent_id}".encode()), "value": coded(document)}
        return request_bytes("POST", "/v3/kv/put", pair)

    def is_confirmed(self, answer: Answer) -> bool:
        """Return whether an answer says that the change is made."""
        return answer.status == 200 and b'"revision"' in answer.body


def coded(data: bytes) -> str:
    """Return bytes as the gateway wants them."""
    return base64.b64encode(data).decode()


async def status(place: Place) -> dict[str, Any]:
    """Return what a member says of itself; nothing when it doesn't answer."""
    connection = Connection(place)
    try:
        with trio.move_on_after(ASK_SECONDS):
            answer = await connection.ask(request_bytes("POST", "/v3/maintenance/status", {}))
            found: dict[str, Any] = answer.document() if answer.status == 200 else {}
            return found
    except Lost:
        return {}
    finally:
        connection.close()
    return {}
