"""What clients do in a run, and what the judge learns of it."""

from reachnode.peers.raft.safeguards import ALL_ON
from sim.stage import Stage


def test_random_clients_change_and_read() -> None:
    """Clients ask for changes and fenced reads, and the judge has both."""
    stage = Stage(4, ALL_ON)
    stage.world.clients.begin(stage.now + 5.0)
    stage.run(8.0)
    assert len(stage.world.judge.changes) > 10
    assert len(stage.world.judge.reads) > 3
    assert all(change.fate is not None for change in stage.world.judge.changes.values())


def test_quiet_clients_ask_for_nothing() -> None:
    """While a fault wants nothing else to happen, nobody asks."""
    stage = Stage(4, ALL_ON)
    stage.world.clients.quiet_until = stage.now + 3.0
    stage.world.clients.begin(stage.now + 2.0)
    stage.run(2.5)
    assert stage.world.judge.changes == {}


def test_a_wiped_disk_is_admitted() -> None:
    """The operator replaces a disk, and its owner counts again."""
    stage = Stage(4, ALL_ON)
    wiped = stage.others(stage.leader)[0]
    stage.member(wiped).kill(power=False)
    stage.member(wiped).wipe()
    stage.member(wiped).start()
    assert stage.wait(lambda: stage.core(wiped).running is not None)
    assert not stage.core(wiped).counts(wiped)
    stage.world.clients.replace_disk(wiped)
    assert stage.wait(lambda: stage.core(wiped).counts(wiped))
    stage.world.clients.replace_disk(wiped)
    stage.run(1.0)
    assert stage.core(wiped).counts(wiped), "asking again changes nothing"
