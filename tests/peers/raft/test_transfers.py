"""Snapshots between one core and its peers."""

import random
from collections import deque
from dataclasses import replace

import pytest

from reachnode.model.agents import Instance
from reachnode.peers.raft.disk import WriteSnapshot
from reachnode.peers.raft.messages import Ack, Append, SnapshotAck, SnapshotPiece
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.snapshot import SnapshotHeader, write_snapshot
from reachnode.peers.raft.transfer import START_OVER
from reachnode.registry.commands import Advance, Register
from reachnode.registry.outcomes import Applied
from tests.peers.raft.cores import SETTINGS, CoreNode, Cores, three


def grow(cores: Cores, member: str = "n1", count: int = 30) -> None:
    """Let a leader apply so many changes that its journal is trimmed."""
    for _ in range(count):
        cores[member].propose(Advance(by_ms=1))
        cores.settle()
    cores.run(0.2)


def left_behind(*, leader: str = "n1", settings: RaftSettings = SETTINGS) -> Cores:
    """Return three members; n3 is down, and needs a snapshot when it comes back."""
    cores = three(settings, leader=leader)
    cores.stop("n3")
    grow(cores)
    assert cores[leader].raft.journal.base > cores["n3"].raft.journal.end
    return cores


def whole(node: CoreNode, *, term: int, index: int) -> SnapshotPiece:
    """Return a member's state as a snapshot in one piece."""
    header = SnapshotHeader(node.state.cluster_id, index, term)
    data = b"".join(write_snapshot(node.state, header))
    term = node.raft.engine.term
    return SnapshotPiece(term=term, index=index, offset=0, data=data, is_last=True)


def test_a_disk_that_is_behind_piles_up_no_snapshots() -> None:
    """Else each that comes would wait in memory, and the next one after it; later it is taken."""
    cores = left_behind(settings=replace(SETTINGS, unsynced_bytes_max=0))
    cores.start("n3")
    cores["n3"].is_stalled = True
    cores["n3"].core.disk.submit(WriteSnapshot(name="x.new", offset=0, data=b"x"))
    waiting = cores["n3"].core.disk.bytes_waiting
    cores.run(12.0)
    assert cores["n3"].core.disk.bytes_waiting == waiting
    cores["n3"].is_stalled = False
    cores.run(12.0)
    assert cores.agree()


def test_a_slow_transfer_ends_though_changes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next snapshot waits for it; else each one would take the former one's place for ever."""
    cores = left_behind()
    for number in range(100):
        instance = Instance(agent_id=f"a{number}", agent="a", name="x" * 1_000)
        cores["n1"].propose(Register(instance=instance))
    grow(cores)
    under_way: deque[bytes] = deque()

    def bulk(peer: str, data: bytes) -> bool:
        if peer == "n3":
            under_way.append(data)
        return True

    monkeypatch.setattr(cores["n1"], "bulk", bulk)
    cores.start("n3")
    for _ in range(6):
        grow(cores, count=8)
        if under_way:
            cores["n3"].core.received("n1", under_way.popleft())
    cores.run(0.5)
    assert cores["n3"].core.transfers.counters["snapshots_installed"] == 1
    assert cores.agree()
    sent = cores["n3"].raft.journal.base
    grow(cores)
    assert cores["n1"].raft.journal.base > sent, "the next one was made afterwards"


def test_a_follower_that_is_far_behind_gets_a_snapshot_and_what_follows() -> None:
    """It applies nothing twice, tells its outcomes to nobody, and survives a restart."""
    cores = left_behind()
    before = len(cores["n3"].applied)
    cores.start("n3")
    cores.run(0.5)
    assert cores.agree()
    assert cores["n1"].core.transfers.counters["snapshots_sent"] >= 1
    assert cores["n3"].core.transfers.counters["snapshots_installed"] == 1
    assert cores["n1"].core.transfers.sending == {}
    (index, outcomes), *rest = cores["n3"].applied[before:]
    assert index == cores["n3"].raft.journal.base
    assert outcomes == ()
    assert [at for at, _ in rest] == list(range(index + 1, index + 1 + len(rest)))
    cores["n3"].files.power_loss(random.Random(1))
    cores.stop("n3")
    cores.start("n3")
    cores.run(0.5)
    assert cores.agree()


def test_a_wiped_disk_gets_a_snapshot_without_counting() -> None:
    """Like everybody else."""
    cores = left_behind()
    cores["n3"].files.wipe()
    cores.start("n3")
    cores.run(0.5)
    assert cores.agree()
    assert not cores["n1"].core.counts("n3")
    more = cores["n1"].propose()
    cores.run(0.2)
    assert isinstance(more.fate, Applied)
    assert cores.agree()


def test_changes_go_on_while_a_snapshot_is_under_way() -> None:
    """Its receiver gets them afterwards."""
    cores = left_behind()
    cores.cut.add(("n3", "n1"))
    cores.start("n3")
    told = cores["n1"].propose()
    cores.run(0.1)
    assert isinstance(told.fate, Applied)
    cores.cut.clear()
    cores.run(0.5)
    assert cores.agree()


def begun() -> tuple[Cores, CoreNode]:
    """Return a leader that has begun to send n3 a snapshot; nothing of n3's arrives."""
    cores = left_behind()
    cores.cut.add(("n3", "n1"))
    cores.start("n3")
    node = cores["n1"]
    node.hear("n3", cores["n3"].core.standing.greeting())
    base, term = node.raft.journal.base, node.raft.engine.term
    node.hear("n3", Ack(term, base, reset=True, success=False))
    cores.settle()
    return cores, node


def test_a_transfer_that_makes_no_progress_begins_anew() -> None:
    """After a while, with the newest snapshot; a lost connection ends it at once."""
    cores, node = begun()
    first = node.core.transfers.sending["n3"]
    cores.run(4.9)
    assert node.core.transfers.sending["n3"] is first
    cores.run(0.3)
    assert node.core.transfers.sending["n3"] is not first
    cores.disconnect("n1", "n3")
    assert node.core.transfers.sending == {}


def test_a_transfer_that_was_refused_begins_anew() -> None:
    """As its receiver asks for, and nobody else."""
    cores, node = begun()
    first = node.core.transfers.sending["n3"]
    term = node.raft.engine.term
    node.hear("n2", SnapshotAck(term, first.index, START_OVER))
    assert node.core.transfers.sending["n3"] is first
    node.hear("n3", SnapshotAck(term, first.index, START_OVER))
    assert node.core.transfers.sending["n3"] is first, "not at once, or it would go on for ever"
    cores.run(0.2)
    assert node.core.transfers.sending["n3"] is not first
    cores.cut.clear()
    cores.run(1.0)
    assert cores.agree()
    assert node.core.transfers.counters["snapshots_sent"] <= 4


def test_entries_are_of_no_use_to_who_takes_a_snapshot() -> None:
    """It gets heartbeats meanwhile, and no acknowledgement before its end ends the transfer."""
    cores, node = begun()
    sending = node.core.transfers.sending["n3"]
    before = len(node.said)
    node.propose()
    cores.run(0.2)
    appends = [one for one in node.said_since(before, "n3") if isinstance(one, Append)]
    assert appends
    assert not any(append.entries for append in appends)
    term = node.raft.engine.term
    node.hear("n3", Ack(term, sending.index, reset=False, success=True))
    assert node.core.transfers.sending["n3"] is sending
    node.hear("n3", Ack(term, sending.index + 1, reset=False, success=True))
    assert node.core.transfers.sending == {}
    assert node.raft.engine.next_index("n3") == sending.index + 1


def test_without_a_data_connection_a_snapshot_waits() -> None:
    """It is tried again in a while, not as fast as the disk can read."""
    cores, node = begun()
    node.core.transfers.forget("n3")
    node.has_data_lane = False
    node.core.transfers.want("n3")
    sent = node.core.transfers.counters["snapshots_sent"]
    cores.run(1.0)
    assert sent < node.core.transfers.counters["snapshots_sent"] <= sent + 10
    node.has_data_lane = True
    cores.cut.clear()
    cores.run(1.0)
    assert cores.agree()


def test_a_follower_that_acknowledges_less_than_the_log_holds_gets_a_snapshot() -> None:
    """The leader can't go on before its base."""
    cores, node = begun()
    node.core.transfers.forget("n3")
    node.core.transfers.go_on_at("n3", node.raft.journal.base)
    assert "n3" in node.core.transfers.sending
    assert cores.is_connected("n1", "n3")


def test_a_follower_that_needs_the_base_itself_gets_a_snapshot() -> None:
    """The base is a placeholder: its entry is gone."""
    cores = three()
    node = cores["n1"]
    cores.stop("n3")
    following = node.raft.engine.next_index("n3")
    assert following is not None
    node.propose()
    cores.settle()
    node.raft.journal.trim(following)
    node.core.transfers.tend(node.sources.now())
    assert node.raft.engine.next_index("n3") == node.raft.journal.end + 1


def test_a_leader_that_is_deposed_sends_no_more() -> None:
    """What was under way is forgotten; the next leader sends its own."""
    cores, node = begun()
    assert node.core.transfers.sending
    node.raft.engine.step_down()
    node.core.tick()
    assert node.core.transfers.sending == {}
    assert cores["n2"].core.transfers.sending == {}


def test_a_piece_from_somebody_else_is_refused() -> None:
    """From a peer that doesn't lead, or of another term; a leader takes none at all."""
    cores = three()
    good = whole(cores["n1"], term=1, index=50)
    for node, peer, term in (("n2", "n3", good.term), ("n2", "n1", 0), ("n1", "n2", good.term)):
        piece = SnapshotPiece(term=term, index=50, offset=0, data=good.data, is_last=True)
        before = len(cores[node].said)
        cores[node].hear(peer, piece)
        assert SnapshotAck(term, 50, START_OVER) in cores[node].said_since(before, peer)


def test_a_snapshot_of_what_is_applied_changes_nothing() -> None:
    """It is acknowledged up to what is applied here, which the leader has for certain."""
    cores = three()
    node = cores["n2"]
    index = node.raft.machine.index
    log = node.raft.journal[:]
    before = len(node.said)
    node.hear("n1", whole(cores["n1"], term=1, index=index))
    assert node.core.transfers.counters["snapshots_refused"] == 1
    assert node.raft.journal[:] == log
    term = node.raft.engine.term
    assert node.said_since(before) == [Ack(term, index + 1, reset=False, success=True)]


def test_a_snapshot_is_acknowledged_once_it_is_durable() -> None:
    """With its own index, not with the tail kept behind it."""
    cores = three()
    node = cores["n2"]
    term, end = node.raft.engine.term, node.raft.journal.end
    node.is_stalled = True
    before = len(node.said)
    node.hear("n1", whole(cores["n1"], term=term, index=end + 5))
    acks = [one for one in node.said_since(before) if isinstance(one, Ack)]
    assert acks == []
    node.is_stalled = False
    node.work_disk()
    acks = [one for one in node.said_since(before) if isinstance(one, Ack)]
    assert acks == [Ack(term, end + 6, reset=False, success=True)]
    assert node.raft.journal.base == node.raft.engine.applied_index == end + 5


@pytest.mark.parametrize("itself", [True, False])
def test_the_tail_kept_behind_a_snapshot_is_not_acknowledged(itself: bool) -> None:
    """It was not verified against this leader's log; turned off, it is claimed."""
    settings = RaftSettings(safeguards=Safeguards(snapshot_claims_itself=itself))
    cores = three(settings)
    node, leader = cores["n2"], cores["n1"]
    cores.cut |= {("n1", "n3"), ("n2", "n1")}
    for _ in range(3):
        leader.propose()
        cores.settle()
    index, end = node.raft.machine.index + 1, node.raft.journal.end
    before = len(node.said)
    node.hear("n1", whole(leader, term=leader.raft.engine.term, index=index))
    cores.settle()
    acks = [one for one in node.said_since(before) if isinstance(one, Ack)]
    assert [ack.next_index - 1 for ack in acks] == [index if itself else end]
    assert node.raft.journal.end == end


def test_changes_that_a_snapshot_has_covered_are_tried_again() -> None:
    """Their outcomes came with it, untold: the repeat tells them."""
    cores = three()
    node = cores["n1"]
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    told = node.propose(name="mine", seconds=30.0)
    index = node.raft.journal.end
    cores.run(1.5)
    assert not node.is_leader
    cores.run(1.5)
    leader = cores.leader()
    again = leader.propose(name="mine")
    cores.settle()
    assert isinstance(again.fate, Applied)
    term = leader.raft.engine.term
    cores.cut.clear()
    node.hear(leader.me, *[])
    grow(cores, leader.me)
    cores.run(1.0)
    assert isinstance(told.fate, Applied)
    assert told.fate.index == again.fate.index
    assert index > 0
    assert term == leader.raft.engine.term
    assert cores.agree()
