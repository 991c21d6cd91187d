"""Agents of tests: a real server each, a heart that beats, and a client that watches them."""

import http.client
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.processes import SECONDS_MAX, NodeProcess


class Server(socketserver.ThreadingTCPServer):
    """A server on loopback that takes connections and says nothing."""

    allow_reuse_address = True
    daemon_threads = True


class Agent:
    """One agent: what it registers, its server, its heartbeats.

    Args:
        agent_id: Its id.
        home: Where it beats.
    """

    def __init__(self, agent_id: str, home: NodeProcess) -> None:
        self.agent_id = agent_id
        self.home = home
        self._server: Server | None = None
        self._port = 0
        self._is_silent = threading.Event()
        self._heart: threading.Thread | None = None

    @property
    def registration(self) -> dict[str, Any]:
        """What it says of itself."""
        capability = {"name": "demo.echo", "protocol": "rest", "endpoint": "/echo"}
        return {
            "agent_id": self.agent_id,
            "agent": "echo",
            "base_url": f"http://127.0.0.1:{self._port}/",
            "capabilities": [capability],
        }

    def listen(self) -> None:
        """Be there, at the same port as before."""
        server = Server(("127.0.0.1", self._port), socketserver.BaseRequestHandler)
        self._server, self._port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Take connections no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def beat(self) -> Any:
        """Beat once, and return the answer."""
        body = {"agent_id": self.agent_id, "load": 0.1}
        status, answer = self.home.ask("POST", "/heartbeat", body)
        assert status == 200, answer
        return answer

    def start_beating(self) -> None:
        """Beat as often as the node says, until told to be silent."""
        self._is_silent.clear()
        self._heart = threading.Thread(target=self._keep_beating, daemon=True)
        self._heart.start()

    def fall_silent(self) -> None:
        """Beat no more."""
        if self._heart is not None:
            self._is_silent.set()
            self._heart.join(SECONDS_MAX)
            self._heart = None

    def _keep_beating(self) -> None:
        interval_ms = 0
        while not self._is_silent.wait(interval_ms / 1000):
            interval_ms = self.beat()["heartbeat_interval_ms"]


@contextmanager
def living(*agents: Agent) -> Iterator[None]:
    """Let agents listen, and end them."""
    try:
        for agent in agents:
            agent.listen()
        yield
    finally:
        for agent in agents:
            agent.fall_silent()
            agent.close()


class Watch:
    """A client that watches a node."""

    def __init__(self, node: NodeProcess, query: str = "") -> None:
        self._connection = http.client.HTTPConnection(*node.place, timeout=SECONDS_MAX)
        self._connection.request("GET", f"/api/v1/watch{query}")
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        self.states: dict[str, str] = {}
        """The state of each instance, as it was told last."""

    def event(self) -> None:
        """Take one event."""
        fields: dict[str, str] = {}
        while line := self._response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        document = json.loads(fields.get("data", "{}"))
        for one in document.get("items", ()):
            self.states[one["agent_id"]] = one["state"]
        for change in document.get("changes", ()):
            if change["kind"] == "delete":
                self.states.pop(change["agent_id"], None)
            else:
                self.states[change["agent_id"]] = change["instance"]["state"]

    def until(self, is_so: Callable[[dict[str, str]], bool]) -> None:
        """Take events until what they told amounts to something."""
        while not is_so(self.states):
            self.event()

    def until_state(self, agent_id: str, state: str) -> None:
        """Take events until an instance is in a state."""
        self.until(lambda states: states.get(agent_id) == state)

    def close(self) -> None:
        """Leave."""
        self._response.close()
        self._connection.close()


@contextmanager
def watched(*nodes: NodeProcess, query: str = "") -> Iterator[list[Watch]]:
    """Give a client that watches each node."""
    watches = [Watch(node, query) for node in nodes]
    try:
        yield watches
    finally:
        for watch in watches:
            watch.close()
