"""This disk among the others: founding, greetings, whose word counts."""

import msgspec
import pytest

from reachnode.peers.raft.disk import Note, Performed
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.identity import Identity, read_identity
from reachnode.peers.raft.loading import Loaded, load
from reachnode.peers.raft.messages import Greet
from reachnode.peers.raft.opening import NO_OP
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.standing import checked_identity
from reachnode.peers.raft.storage import IDENTITY, MARK
from reachnode.registry.commands import ReplaceMember
from reachnode.registry.outcomes import Applied, Refused
from sim.disk import CrashNow
from tests.peers.raft.cores import MEMBERS, CoreNode, Cores, three


def wiped(cores: Cores, member: str) -> CoreNode:
    """Give a member an empty disk, and start it."""
    cores.stop(member)
    cores[member].files.wipe()
    cores.start(member)
    cores.run(0.5)
    return cores[member]


def replace(cores: Cores, member: str, *, at: str = "n1") -> object:
    """Admit the disk a member greets with; return what became of it."""
    standing = cores[at].core.standing
    incarnation = standing.replaceable(member)
    if isinstance(incarnation, Refused):
        return incarnation
    follows = standing.newest_admission()
    command = ReplaceMember(member_id=member, incarnation=incarnation, follows=follows)
    told = cores[at].propose(command)
    cores.run(0.5)
    return told.fate


def greets(node: CoreNode) -> list[Greet]:
    """Return a member's greetings."""
    return [message for _, message in node.said if isinstance(message, Greet)]


# --- beginning


def test_a_new_disk_greets_once_its_incarnation_is_durable() -> None:
    """It must not be forgotten once it was told."""
    cores = Cores()
    node = cores["n1"]
    node.is_stalled = True
    cores.start("n1", "n2")
    assert greets(node) == []
    node.is_stalled = False
    cores.settle()
    assert greets(node)[0].incarnation == node.core.standing.identity.incarnation
    assert greets(node)[0].cluster_id == ""


def test_an_incarnation_that_was_read_is_made_durable_before_it_is_told() -> None:
    """The process before was killed between giving the file its name and syncing that."""
    cores = Cores()
    node = cores["n1"]
    node.is_stalled = True
    cores.start("n1")
    node.files.fail_after(4)
    with pytest.raises(CrashNow):
        node.storage.perform(node.disk.take(0.0))
    node.files.kill()
    assert load(node.files).identity == node.core.standing.identity
    cores.stop("n1")
    node.is_stalled = True
    cores.start("n1", "n2")
    assert greets(node) == []
    node.is_stalled = False
    cores.settle()
    incarnation = greets(node)[0].incarnation
    assert read_identity(node.files.durable()[IDENTITY]).incarnation == incarnation


def test_a_cluster_is_told_of_once_it_is_durable() -> None:
    """Identity, vote and journal; a crash before that begins anew with the same disk."""
    cores = Cores()
    cores.start("n1", "n2")
    cores["n3"].is_stalled = True
    cores.start("n3")
    cores["n3"].work_disk()
    cores["n3"].is_stalled = False
    cores["n3"].work_disk()
    cores["n3"].is_stalled = True
    cores.settle()
    assert cores["n3"].core.standing.identity.cluster_id
    assert not greets(cores["n3"])[-1].cluster_id
    cores.stop("n3")
    cores.start("n3")
    cores.run(1.0)
    ids = {cores[member].core.standing.identity.cluster_id for member in MEMBERS}
    assert len(ids) == 1
    assert {greets(cores[member])[-1].cluster_id for member in MEMBERS} == ids


def test_a_disk_that_belongs_to_a_cluster_has_everything_else() -> None:
    """Killed right after its identity was written, the node starts on it and runs."""
    cores = Cores()
    cores.start("n1", "n2")
    node = cores["n3"]
    node.start()
    cores.rejoin("n3")
    node.is_stalled = True
    node.storage.perform(node.disk.take(0.0))
    node.disk.settle(Performed(count=1))
    node.core.synced()
    cores.settle()
    node.storage.perform(node.disk.take(0.0))
    cores.stop("n3")
    assert load(node.files).identity == node.core.standing.identity
    assert node.core.standing.identity.cluster_id
    cores.start("n3")
    cores.run(1.0)
    assert cores.agree()


def test_a_directory_of_another_member_or_cluster_is_refused() -> None:
    """Started with it, the node stops and says whose it is."""
    membership = Cores().membership("n1")
    other = Identity(member="n2", incarnation="d")
    with pytest.raises(FailStop, match="belongs to n2, this node is n1") as caught:
        checked_identity(Loaded(identity=other, notes={}), membership, lambda: "new")
    assert caught.value.status == 77
    founders = {"n1": "d", "n2": "e"}
    smaller = Identity(member="n1", incarnation="d", cluster_id="c", founders=founders)
    with pytest.raises(FailStop, match="the members n1, n2, but"):
        checked_identity(Loaded(identity=smaller, notes={}), membership, lambda: "new")
    empty = checked_identity(Loaded(identity=None, notes={}), membership, lambda: "new")
    assert empty == Identity(member="n1", incarnation="new")


def test_a_founder_that_leaves_is_waited_for_again() -> None:
    """It may come back as another disk; whoever is left says so to the others."""
    cores = Cores()
    cores.start("n1", "n2")
    founding = cores["n1"].core.standing.founding
    assert founding is not None
    assert founding.waits_for() == ("n3 (not heard)",)
    cores.stop("n2")
    assert founding.waits_for() == ("n2 (not heard)", "n3 (not heard)")
    cores["n2"].files.wipe()
    cores.start("n2", "n3")
    cores.run(1.0)
    founders = {member: cores[member].core.standing.identity for member in MEMBERS}
    assert founders["n1"].founders["n2"] == founders["n2"].incarnation


# --- who is let in


def test_a_counted_disk_keeps_what_it_acknowledged_over_a_reconnect() -> None:
    """Only a disk without a vote is counted for nothing."""
    cores = three()
    match = cores["n1"].raft.engine.match_index("n2")
    assert match > 0
    cores.disconnect("n1", "n2")
    cores.connect("n1", "n2")
    cores["n1"].hear("n2", cores["n2"].core.standing.greeting())
    assert cores["n1"].raft.engine.match_index("n2") == match


def test_a_member_of_another_cluster_is_shown_the_door() -> None:
    """Its connection is broken, and it is told in the log."""
    cores = three()
    node = cores["n1"]
    greet = node.core.standing.greets["n2"]
    stranger = Greet(
        incarnation=greet.incarnation,
        cluster_id="another",
        founders=greet.founders,
        peers=greet.peers,
        term=1,
        log_end=1,
        noted=0,
    )
    node.hear("n2", stranger)
    assert node.dropped == ["n2"]
    assert ("another cluster", {"peer": "n2", "cluster_id": "another"}) in node.notices


def test_a_wiped_disk_learns_and_does_not_count_until_it_is_replaced() -> None:
    """It gets every entry; the others know it as a disk without a vote."""
    cores = three()
    cores["n1"].propose()
    cores.settle()
    node = wiped(cores, "n2")
    assert node.raft.machine.index == cores["n1"].raft.machine.index
    assert not node.core.counts("n2")
    assert not cores["n1"].core.counts("n2")
    assert "a disk without a vote" in cores["n1"].events()
    assert isinstance(replace(cores, "n2"), Applied)
    assert all(cores[member].core.counts("n2") for member in MEMBERS)
    assert greets(cores["n3"])[-1].noted > 0


def test_a_replaced_disk_is_never_let_in_again() -> None:
    """Should the old one come back, its connections are broken."""
    cores = three()
    old = cores["n2"].files.copy()
    wiped(cores, "n2")
    assert isinstance(replace(cores, "n2"), Applied)
    cores.stop("n2")
    cores["n2"].files.restore(old)
    cores.start("n2")
    assert "a replaced disk" in cores["n1"].events()
    assert not cores.is_connected("n1", "n2")
    assert not cores.is_connected("n2", "n3")


def test_an_admission_outlives_the_process_beside_the_vote() -> None:
    """Noted before anybody relies on it, even if the state that holds it is lost."""
    cores = three()
    wiped(cores, "n2")
    assert isinstance(replace(cores, "n2"), Applied)
    incarnation = cores["n2"].core.standing.identity.incarnation
    for member in ("n1", "n3"):
        note = cores[member].raft.journal.notes["n2"]
        assert note.incarnation == incarnation
        cores.stop(member)
    cores.start("n1")
    assert cores["n1"].raft.journal.notes["n2"] == note
    assert cores["n1"].core.standing.greeting().noted == note.index
    assert isinstance(note, Note)


def test_noting_can_be_turned_off() -> None:
    """Which the simulator must notice."""
    cores = three(RaftSettings(safeguards=Safeguards(admission_is_noted=False)))
    wiped(cores, "n2")
    replace(cores, "n2")
    assert cores["n1"].raft.journal.notes == {}
    careless = three(RaftSettings(safeguards=Safeguards(wiped_disk_counts_not=False)))
    wiped(careless, "n2")
    assert careless["n1"].core.counts("n2")


# --- whose disk may be replaced


def test_only_a_connected_member_can_be_replaced() -> None:
    """By a node that is running itself; the refusals say why not."""
    cores = three()
    standing = cores["n1"].core.standing
    assert isinstance(standing.replaceable("n9"), Refused)
    assert standing.replaceable("n2") == cores["n2"].core.standing.identity.incarnation
    cores.disconnect("n1", "n2")
    refused = standing.replaceable("n2")
    assert isinstance(refused, Refused)
    assert (refused.code, refused.why) == (
        "invalid_request",
        "n2 is not connected to this node",
    )
    young = Cores()
    young.start("n1")
    refused = young["n1"].core.standing.replaceable("n2")
    assert isinstance(refused, Refused)
    assert refused.code == "unknown_member"


def test_a_second_replacement_waits_until_the_first_is_on_all_disks() -> None:
    """Two disks gone at once may be a majority: those that are behind are named."""
    cores = three()
    wiped(cores, "n2")
    assert isinstance(replace(cores, "n2"), Applied)
    node = cores["n1"]
    said = node.core.standing.greets["n3"]
    node.hear("n3", msgspec.structs.replace(said, noted=0))
    refused = replace(cores, "n2")
    assert isinstance(refused, Refused)
    assert refused.code == "cluster_changing"
    assert "the disks of n3:" in refused.why
    node.hear("n3", said)
    wiped(cores, "n3")
    assert isinstance(replace(cores, "n3"), Applied)
    cores.run(0.5)
    assert all(cores["n2"].core.counts(member) for member in MEMBERS)


def test_a_node_that_has_not_noted_the_last_replacement_names_itself() -> None:
    """It can't know that its own disk has it."""
    cores = three()
    wiped(cores, "n2")
    assert isinstance(replace(cores, "n2"), Applied)
    cores["n1"].core.standing._noted_index = 0
    refused = replace(cores, "n3")
    assert isinstance(refused, Refused)
    assert "the disks of n1" in refused.why


@pytest.mark.parametrize("changes_count", [3, 40], ids=["entries", "snapshot"])
def test_entries_that_were_overwritten_are_missed_by_nobody(changes_count: int) -> None:
    """A follower acknowledged them and cut them with everybody else: it has forgotten nothing."""
    cores = Cores(("n1", "n2", "n3", "n4", "n5"))
    cores.start()
    node = cores.elect("n1")
    for other in ("n2", "n4", "n5"):
        cores.disconnect("n1", other)
    for _ in range(2):
        node.core.append_command(NO_OP)
        cores.settle()
    acknowledged = cores["n3"].raft.journal.end
    cores.isolate("n1")
    cores.isolate("n3")
    cores.elect("n2")
    cores.connect("n2", "n3")
    cores.run(0.3)
    cores.isolate("n3")
    assert cores["n3"].raft.journal.end < acknowledged
    for _ in range(changes_count):
        cores["n2"].propose()
        cores.settle()
    cores.connect("n1", "n2")
    cores.run(0.5)
    assert node.raft.engine.commit_index > acknowledged
    cores.connect("n1", "n3")
    cores.settle()
    assert node.core.counts("n3")


def test_a_former_disk_counts_no_more_once_its_replacement_is_in_the_log() -> None:
    """It may still be alive and know nothing of it; with it a second leader would be elected."""
    cores = three(leader="n2")
    incarnation = cores["n3"].core.standing.identity.incarnation
    cores.isolate("n3")
    cores.cut.add(("n1", "n2"))
    command = ReplaceMember(member_id="n3", incarnation="new", follows=0)
    cores["n2"].propose(command)
    cores.settle()
    admitting = cores["n1"].raft.journal.end
    cores.isolate("n1")
    cores.connect("n1", "n3")
    cores.settle()
    assert cores["n1"].raft.machine.index < admitting
    assert cores["n1"].core.standing.admissions.present["n3"] == incarnation
    assert not cores["n1"].core.counts("n3")
    cores.run(3.0)
    assert not cores["n1"].is_leader


def test_a_replacement_that_was_noted_holds_before_its_entry_is_applied_again() -> None:
    """After a restart it is in the log above the state; the admitted disk counts all the same."""
    cores = three()
    for _ in range(2):
        wiped(cores, "n3")
        assert isinstance(replace(cores, "n3"), Applied)
        cores.run(0.5)
    for member in MEMBERS:
        cores.stop(member)
        cores[member].files.remove(MARK)
    cores.start("n1", "n3")
    assert max(cores["n1"].raft.journal.replacements) > cores["n1"].raft.machine.index
    assert cores["n1"].core.counts("n3")
    cores.run(3.0)
    told = cores.leader().propose()
    cores.run(0.5)
    assert isinstance(told.fate, Applied)
    assert cores.agree(("n1", "n3"))


def test_a_replacement_that_is_cut_from_the_log_is_none() -> None:
    """The disk counts again, as it does for everybody else."""
    cores = three()
    cores.isolate("n1")
    command = ReplaceMember(member_id="n3", incarnation="new", follows=0)
    cores["n1"].propose(command, seconds=0.5)
    assert not cores["n1"].core.counts("n3")
    cores.run(2.0)
    cores.leader().propose()
    cores.rejoin("n1")
    cores.run(1.0)
    assert cores["n1"].core.counts("n3")
    assert cores["n1"].raft.journal.replacements == {}
    assert cores.agree()
