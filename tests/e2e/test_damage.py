"""What a disk may come back with: a clear refusal, or a node that is no danger to others."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from reachnode.cli.main import main
from tests.e2e.processes import NodeProcess, alone, cluster_of, running
from tests.e2e.test_three_nodes import leader_of

CHANGES_COUNT = 40
ENVIRONMENT = {"REACHNODE_CLUSTER__SNAPSHOT_ENTRIES": "10"}


Damage = Callable[[Path], None]


@pytest.fixture(name="killed", scope="module")
def killed_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the data directory of a node that was killed; it is to be copied."""
    directory = tmp_path_factory.mktemp("killed")
    node = alone(directory)
    node.environment = ENVIRONMENT
    with running(node):
        for number in range(CHANGES_COUNT):
            document = {"agent_id": f"a{number}"}
            node.insist("POST", "/register", document, key=f"k{number}")
    return directory / "n1"


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def snapshot_of(directory: Path) -> Path:
    """Return the newest snapshot in a data directory."""
    return max(path for path in directory.glob("snapshot-*") if path.suffix == "")


def in_journal(directory: Path) -> None:
    """Flip a bit in the middle of what was made durable."""
    journal = directory / "journal"
    flip(journal, journal.stat().st_size // 2)


def journal_cut(directory: Path) -> None:
    """Cut the journal, as a file system might that lost its end."""
    journal = directory / "journal"
    journal.write_bytes(journal.read_bytes()[:-100])


def journal_gone(directory: Path) -> None:
    """Remove the journal."""
    (directory / "journal").unlink()


def in_snapshot(directory: Path) -> None:
    """Flip a bit in the middle of the snapshot."""
    snapshot = snapshot_of(directory)
    flip(snapshot, snapshot.stat().st_size // 2)


def snapshot_emptied(directory: Path) -> None:
    """Leave nothing of the snapshot but its name."""
    snapshot_of(directory).write_bytes(b"")


def snapshot_gone(directory: Path) -> None:
    """Remove the snapshot that the journal relies on."""
    snapshot_of(directory).unlink()


def in_vote(directory: Path) -> None:
    """Flip a bit of the vote."""
    flip(directory / "vote", 5)


def vote_gone(directory: Path) -> None:
    """Remove the vote."""
    (directory / "vote").unlink()


def identity_gone(directory: Path) -> None:
    """Remove who the disk is."""
    (directory / "identity").unlink()


@pytest.mark.parametrize(
    ("damage", "status", "word", "file"),
    [
        (in_journal, 70, "journal_damaged", "journal"),
        (journal_cut, 70, "journal_damaged", "journal"),
        (journal_gone, 70, "journal_damaged", "journal"),
        (in_snapshot, 71, "snapshot_damaged", "snapshot-"),
        (snapshot_emptied, 71, "snapshot_damaged", "snapshot-"),
        (snapshot_gone, 70, "journal_damaged", "journal"),
        (in_vote, 72, "vote_damaged", "vote"),
        (vote_gone, 72, "vote_damaged", "vote"),
        (identity_gone, 72, "vote_damaged", "identity"),
    ],
)
def test_damage_is_refused_with_its_place(
    tmp_path: Path, killed: Path, damage: Damage, status: int, word: str, file: str
) -> None:
    """The node ends with a status of its own and one line that names file and byte."""
    node = alone(tmp_path)
    shutil.copytree(killed, tmp_path / "n1")
    damage(tmp_path / "n1")
    node.spawn()
    assert node.ended() == status, node.log()
    lines = node.log().splitlines()
    refusals = [line for line in lines if line.startswith("reachnode: ")]
    assert refusals == lines[-1:]
    assert refusals[0].startswith(f"reachnode: {word}: {file}")
    assert " is damaged at byte " in refusals[0]


def test_an_undamaged_directory_starts(tmp_path: Path, killed: Path) -> None:
    """The same directory without damage has everything, its snapshot included."""
    node = alone(tmp_path)
    shutil.copytree(killed, tmp_path / "n1")
    assert snapshot_of(tmp_path / "n1").stat().st_size > 0
    with running(node):
        items = node.insist("GET", "/api/v1/agents?consistency=consistent")["items"]
        assert len(items) == CHANGES_COUNT


def test_yesterdays_directory_has_no_vote(tmp_path: Path) -> None:
    """A copy that lacks what it once confirmed is taken along, and counts for nothing."""
    nodes = cluster_of(3, tmp_path)
    with running(*nodes):
        first = nodes[0].insist("POST", "/register", {"agent_id": "first"}, key="k1")
        leader = leader_of(nodes)
        old, other = (node for node in nodes if node is not leader)
        old.see("/api/v1/agents/first", index=first["index"])
        copied(old, leader, to="yesterday")

        last = first
        for number in range(20):
            document = {"agent_id": f"since-{number}"}
            last = leader.insist("POST", "/register", document, key=f"since-{number}")
        old.see("/api/v1/agents/since-19", index=last["index"])
        restored(old, origin="yesterday")

        old.see("/api/v1/agents/since-19", index=last["index"])
        assert role_of(old, asked=leader) == "learner", leader.log()
        after = other.insist("POST", "/register", {"agent_id": "after"}, key="k2")
        for node in nodes:
            assert len(node.see("/api/v1/agents", index=after["index"])["items"]) == 23

        old.stop(signal.SIGKILL)
        shutil.rmtree(tmp_path / old.node_id)
        old.start()
        replaced(old, asked=other)
        other.stop(signal.SIGKILL)
        done = old.insist("POST", "/register", {"agent_id": "counted"}, key="k3")
        assert leader.see("/api/v1/agents/counted", index=done["index"])["agent_id"] == "counted"


def copied(node: NodeProcess, leader: NodeProcess, *, to: str) -> None:
    """Stop a node, copy its directory and start it; it has followed again on return."""
    node.stop(signal.SIGKILL)
    shutil.copytree(node.directory / node.node_id, node.directory / to)
    node.start()
    done = leader.insist("POST", "/register", {"agent_id": "copied"}, key="copied")
    node.see("/api/v1/agents/copied", index=done["index"])


def restored(node: NodeProcess, *, origin: str) -> None:
    """Stop a node, put a copy in the place of its directory and start it."""
    node.stop(signal.SIGKILL)
    shutil.rmtree(node.directory / node.node_id)
    shutil.copytree(node.directory / origin, node.directory / node.node_id)
    node.start()


def role_of(node: NodeProcess, *, asked: NodeProcess) -> str:
    """Return a member's role as another one sees it."""
    members = asked.ask("GET", "/api/v1/cluster")[1]["members"]
    return str(next(member["role"] for member in members if member["id"] == node.node_id))


def replaced(node: NodeProcess, *, asked: NodeProcess) -> None:
    """Admit a node's new disk by the command line, as soon as it is connected."""
    for _ in range(200):
        if main(["cluster", "replace", node.node_id, "--node", asked.url]) == 0:
            break
        asked.ask("GET", "/api/v1/agents?consistency=consistent")  # It takes its time.
    else:
        raise AssertionError(f"{node.node_id} was not admitted: {asked.log()}")
