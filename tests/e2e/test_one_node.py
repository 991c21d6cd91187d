"""One real node: what it is told survives it, and how it ends."""

import signal
import socket
from pathlib import Path

from reachnode.cli.main import main
from tests.e2e.processes import NodeProcess, alone, running


def test_what_was_confirmed_is_there_after_a_restart(tmp_path: Path) -> None:
    """Register, stop in an orderly way, start again: the instance is still there."""
    node = alone(tmp_path)
    with running(node):
        done = node.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        assert node.see("/api/v1/agents/a", index=done["index"])["state"] == "pending"
        assert node.stop() == 0
        ready = node.start()
        assert (ready["event"], ready["node_id"]) == ("ready", "n1")
        shown = node.see("/api/v1/agents/a", index=done["index"])
        assert shown["incarnation"] == done["incarnation"]
        again = node.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        assert again == {**done, "nodes": [node.url]}


def test_what_was_confirmed_survives_kill_9(tmp_path: Path) -> None:
    """Nothing needs an orderly end."""
    node = alone(tmp_path)
    with running(node):
        done = node.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        node.stop(signal.SIGKILL)
        node.start()
        assert node.see("/api/v1/agents/a", index=done["index"])["agent_id"] == "a"


def test_commands_talk_to_a_node(tmp_path: Path) -> None:
    """The command line of this process asks the node of another."""
    node = alone(tmp_path)
    file = tmp_path / "echo.json"
    file.write_text('{"agent_id": "a"}')
    with running(node):
        node.see("/api/v1/agents", index=1)
        for command in (
            ["status"],
            ["agents", "register", str(file)],
            ["agents", "list"],
            ["agents", "deregister", "a"],
            ["cluster", "members"],
        ):
            assert main([*command, "--node", node.url]) == 0


def test_damage_is_refused_at_the_start(tmp_path: Path) -> None:
    """A flipped byte in the journal ends the node with its own status, the place named."""
    node = alone(tmp_path)
    with running(node):
        node.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        assert node.stop() == 0
        journal = tmp_path / "n1" / "journal"
        data = bytearray(journal.read_bytes())
        data[50] ^= 1
        journal.write_bytes(data)
        node.spawn()
        assert node.ended() == 70
    last = node.log().splitlines()[-1]
    assert last.startswith("reachnode: journal_damaged: ")
    assert "byte" in last


def test_a_directory_is_not_shared(tmp_path: Path) -> None:
    """A second node on the same data is refused and harms nothing."""
    node, other = alone(tmp_path), alone(tmp_path)
    with running(node):
        other.spawn()
        assert other.ended() == 1
        assert "is in use; stop the node that has it" in node.log()
        node.insist("POST", "/register", {"agent_id": "a"}, key="k1")


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """Draining waits for a request that never becomes whole; asking twice doesn't."""
    node = alone(tmp_path)
    with running(node), socket.create_connection(node.place) as client:
        client.sendall(b"GET /health HTTP/1.1\r\n")
        for _ in range(3):  # Behind these answers the node has read the bytes above.
            assert node.ask("GET", "/health")[0] == 200
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
        while is_listening(node):
            pass
        assert node.stop() == 1


def is_listening(node: NodeProcess) -> bool:
    """Return whether a node takes connections."""
    try:
        socket.create_connection(node.place).close()
    except OSError:
        return False
    return True


def test_a_wrong_configuration_is_one_line(tmp_path: Path) -> None:
    """Several peers without a secret are refused before anything starts."""
    node = alone(tmp_path, "--peers", "n1=127.0.0.1:1,n2=127.0.0.1:2")
    node.spawn()
    assert node.ended() == 1
    assert node.log().startswith("reachnode: cluster.secret_file: more than one peer needs")
    assert node.log().count("\n") == 1
    assert not (tmp_path / "n1").exists()
