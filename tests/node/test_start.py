"""From a configuration to a process's exit status."""

import io
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from reachnode.model.address import Address
from reachnode.model.config import ConfigError, NodeConfig
from reachnode.node.ports import RunningReplica as RunningReplicaPort
from reachnode.node.start import (
    Parts,
    clients_max,
    ended,
    make_replica,
    open_data_dir,
    read_secrets,
    ready_line,
    run_process,
)
from reachnode.peers.link import LinkSettings
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.settings import RaftSettings
from reachnode.world.network import SystemNetwork
from reachnode.world.sources import SystemSources
from tests.node.running_replica import PEER_ADDRESS, RunningReplica

FREE = Address("127.0.0.1", 0)


class SignalOut(io.StringIO):
    """Takes the ready line and then asks the process to stop."""

    def write(self, text: str) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def config(tmp_path: Path, secret_file: str | None = None) -> NodeConfig:
    """Return the configuration of a node in a directory, on any port."""
    return NodeConfig(
        data_dir=str(tmp_path / "data"), listen=FREE, log_format="json", secret_file=secret_file
    )


def broken(fault: BaseException) -> Callable[[Parts], RunningReplicaPort]:
    """Return what makes a replica that breaks as soon as it runs."""

    def make(_parts: Parts) -> RunningReplicaPort:
        replica = RunningReplica(fault=fault)
        replica.breaks.set()
        return replica

    return make


def test_a_process_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """It says on one line where it listens, and ends with 0."""
    out = SignalOut()
    assert run_process(config(tmp_path), lambda _parts: RunningReplica(), out) == 0
    ready = json.loads(out.getvalue())
    assert ready["event"] == "ready"
    assert ready["node_id"] == "n1"
    assert Address.parse(ready["listen"].removeprefix("http://")).port > 0
    assert ready["peer_listen"] == str(PEER_ADDRESS)


def test_the_ready_line_for_people() -> None:
    """In text it is a sentence."""
    line = ready_line(NodeConfig(), Address("127.0.0.1", 1), Address("::1", 2))
    assert line == "ready: n1 listens on http://127.0.0.1:1, for peers on [::1]:2"


def test_damage_has_its_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what was found and what to do."""
    stop = FailStop(70, "journal_damaged", "bad checksum at byte 40")
    assert run_process(config(tmp_path), broken(stop), io.StringIO()) == 70
    said = capsys.readouterr().err
    assert said.startswith("reachnode: journal_damaged: bad checksum at byte 40 (Move the data")
    assert said.count("\n") == 1


def test_damage_found_before_running(tmp_path: Path) -> None:
    """A replica that can't even be made ends the same way."""

    def make(_parts: Parts) -> RunningReplicaPort:
        raise FailStop(71, "snapshot_damaged", "bad checksum")

    assert run_process(config(tmp_path), make, io.StringIO()) == 71


def test_the_system_may_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the operating system refuses is one line and status 1."""
    assert run_process(config(tmp_path), broken(OSError("no room")), io.StringIO()) == 1
    assert capsys.readouterr().err == "reachnode: no room\n"


def test_a_fault_of_ours_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the traceback, the terminal one line."""
    assert run_process(config(tmp_path), broken(KeyError("x")), io.StringIO()) == 74
    assert capsys.readouterr().err.startswith("reachnode: internal_fault: a fault of ours")
    assert "KeyError" in caplog.text


def test_damage_rules_over_what_comes_with_it() -> None:
    """Of several errors the most telling gives the status."""
    stop = FailStop(72, "vote_damaged", "x")
    assert ended(ExceptionGroup("", [OSError("y"), ExceptionGroup("", [stop])])) == 72


@pytest.mark.parametrize(
    ("files_max", "connections"),
    [(256, 208), (1 << 20, 1000), (resource.RLIM_INFINITY, 1000), (20, 1)],
)
def test_clients_leave_files_to_the_node(files_max: int, connections: int) -> None:
    """However few files may be open, the disk and the peers get theirs."""
    assert clients_max(files_max) == connections


def test_a_secret_is_needed_only_with_peers(tmp_path: Path) -> None:
    """A cluster of one has its own; a file that can't be used names its setting."""
    assert read_secrets(config(tmp_path)).key("x") != read_secrets(config(tmp_path)).key("x")
    file = tmp_path / "secret"
    file.write_text("s" * 32)
    named = config(tmp_path, str(file))
    assert read_secrets(named).key("x") == read_secrets(named).key("x")
    file.write_text("short")
    with pytest.raises(ConfigError, match=r"cluster.secret_file: .*fewer than 32"):
        read_secrets(named)


def test_a_wrong_secret_stops_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is opened when the secret can't be read."""
    wrong = config(tmp_path, str(tmp_path / "gone"))
    assert run_process(wrong, broken(KeyError()), io.StringIO()) == 1
    assert "can't be read" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_directory_belongs_to_one_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second node in the same directory is refused, and a file is no directory."""
    files = open_data_dir(config(tmp_path))
    assert run_process(config(tmp_path), broken(KeyError()), io.StringIO()) == 1
    assert "is in use; stop the node that has it" in capsys.readouterr().err
    files.close()
    (tmp_path / "file").write_text("")
    wrong = NodeConfig(data_dir=str(tmp_path / "file"), listen=FREE)
    assert run_process(wrong, broken(KeyError()), io.StringIO()) == 1
    assert "can't be used" in capsys.readouterr().err


def test_a_replica_is_made_of_the_configuration(tmp_path: Path) -> None:
    """A slower machine gets more time, and nothing is begun before it runs."""
    slow = NodeConfig(
        data_dir=str(tmp_path), listen=FREE, time_scale=3.0, snapshot_entries=50, id="n7"
    )
    files = open_data_dir(slow)
    parts = Parts(
        config=slow,
        secrets=read_secrets(slow),
        files=files,
        network=SystemNetwork(),
        sources=SystemSources(),
    )
    replica = make_replica(parts)
    assert replica._around.raft.snapshot_entries == 50
    assert replica._around.raft.contact_seconds == RaftSettings().contact_seconds * 3
    assert replica._around.link.handshake_seconds == LinkSettings().handshake_seconds * 3
    assert replica.status().phase == "loading"
    assert [member.id for member in replica.status().members] == ["n7"]
    files.close()


def test_what_is_unwise_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings of the configuration reach the log."""
    unwise = NodeConfig(data_dir=str(tmp_path), listen=FREE, insecure=True)
    run_process(unwise, broken(OSError("x")), io.StringIO())
    assert "security.insecure" in caplog.text
