"""Which disk counts, and how a cluster begins."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.peers.raft.disk import Note
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.identity import (
    Admissions,
    Founding,
    Identity,
    cluster_id_of,
    pack_identity,
    read_identity,
)
from reachnode.peers.raft.messages import Greet
from reachnode.peers.raft.records import Damaged, seal
from reachnode.registry.apply import apply
from reachnode.registry.commands import Envelope, ReplaceMember
from reachnode.registry.state import State, genesis

MEMBERS = ("n1", "n2", "n3")
PEERS = [f"{member}=host:{port}" for port, member in enumerate(MEMBERS, start=1)]


def greeting(
    disk: str,
    *,
    cluster_id: str = "",
    founders: dict[str, str] | None = None,
    peers: list[str] | None = None,
    view: str = "",
) -> Greet:
    """Return what a disk says of itself."""
    return Greet(
        incarnation=disk,
        cluster_id=cluster_id,
        founders=founders or {},
        peers=PEERS if peers is None else peers,
        term=0,
        log_end=0,
        noted=0,
        view=view,
    )


def founding(me: str, disk: str) -> Founding:
    """Return what an empty disk begins with."""
    identity = Identity(member=me, incarnation=disk)
    return Founding(identity=identity, peers=PEERS, members=frozenset(MEMBERS))


def replaced(state: State, index: int, member: str, disk: str) -> State:
    """Return the state after a member's disk was replaced."""
    command = ReplaceMember(member_id=member, incarnation=disk)
    envelope = Envelope(request_id=f"r{index}", since_index=0, command=command)
    return apply(state, index, envelope)[0]


# --- the file


@given(st.text(max_size=8), st.text(max_size=8), st.dictionaries(st.text(), st.text(), max_size=3))
def test_an_identity_comes_back_as_it_was(member: str, disk: str, founders: dict[str, str]) -> None:
    """What is written is read."""
    identity = Identity(member=member, incarnation=disk, cluster_id="c", founders=founders)
    assert read_identity(pack_identity(identity)) == identity


@given(st.data())
def test_a_changed_identity_is_never_believed(data: st.DataObject) -> None:
    """Any bit that turned over, and any cut, is damage."""
    whole = pack_identity(Identity(member="n1", incarnation="i" * 32))
    flipped = bytearray(whole)
    flipped[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for changed in (bytes(flipped), cut):
        with pytest.raises(Damaged, match="identity"):
            read_identity(changed)


def test_an_identity_that_was_sealed_but_is_none_is_damage() -> None:
    """A right checksum over something else doesn't help."""
    with pytest.raises(Damaged):
        read_identity(seal(b"\xc1"))


def test_an_identity_of_a_later_format_is_not_guessed_at() -> None:
    """The node says that it is too old."""
    later = msgspec.structs.replace(Identity(member="n1", incarnation="i"), format=2)
    with pytest.raises(FailStop, match=r"format_unknown.*format 2"):
        read_identity(pack_identity(later))


# --- founding


class Founders:
    """Three nodes that found, with links that deliver late, in order, or break."""

    def __init__(self) -> None:
        self.nodes = {member: founding(member, f"{member}-0") for member in MEMBERS}
        self.decided: list[Identity] = []
        self.links: dict[tuple[str, str], list[Greet]] = {pair: [] for pair in PAIRS}
        self.told: dict[str, Greet] = {}
        self._disks_count = 0
        for member in MEMBERS:
            self.look(member)

    def look(self, member: str) -> None:
        """Let a node decide, and tell the others what is new."""
        node = self.nodes[member]
        if not node.identity.cluster_id:
            identity = node.decide()
            if identity is not None:
                self.tell(member)  # The view was told before; founding is told afterwards.
                self.decided.append(identity)
                node.identity = identity
        self.tell(member)

    def tell(self, member: str) -> None:
        """Greet everybody, if there is something new."""
        node = self.nodes[member]
        identity = node.identity
        greet = greeting(
            identity.incarnation,
            cluster_id=identity.cluster_id,
            founders=identity.founders,
            view="" if identity.cluster_id else node.view(),
        )
        if self.told.get(member) != greet:
            self.told[member] = greet
            for other in set(MEMBERS) - {member}:
                self.links[member, other].append(greet)

    def deliver(self, speaker: str, listener: str) -> None:
        """Let the next greeting arrive."""
        if self.links[speaker, listener]:
            greet = self.links[speaker, listener].pop(0)
            if not self.nodes[listener].identity.cluster_id:
                self.nodes[listener].hear(speaker, greet)
                self.look(listener)

    def reconnect(self, one: str, other: str) -> None:
        """Break a connection; on the next one both greet anew."""
        for speaker, listener in ((one, other), (other, one)):
            self.links[speaker, listener] = []
            self.nodes[speaker].forget(listener)
            self.look(speaker)
        for speaker, listener in ((one, other), (other, one)):
            self.links[speaker, listener] = [self.told[speaker]]

    def wipe(self, member: str, _other: str) -> None:
        """Empty a disk: another one comes back, over new connections."""
        self._disks_count += 1
        self.nodes[member] = founding(member, f"{member}-{self._disks_count}")
        for other in set(MEMBERS) - {member}:
            self.reconnect(member, other)


PAIRS = [(one, other) for one in MEMBERS for other in MEMBERS if one != other]
STEPS = ("deliver",) * 6 + ("reconnect", "wipe")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(PAIRS)), max_size=60))
@settings(max_examples=600)
def test_all_who_decide_found_the_same_cluster(steps: list[tuple[str, tuple[str, str]]]) -> None:
    """However greetings are late, connections break and disks are wiped: one cluster at most.

    Two disks gone at once may be a majority; only one of the three is ever wiped here.
    """
    founders = Founders()
    for step, pair in steps:
        if step != "wipe" or pair[0] == "n3":
            getattr(founders, step)(*pair)
    assert len({identity.cluster_id for identity in founders.decided}) <= 1
    # And once nothing more happens, all of them are in it.
    for _ in range(20):
        for pair in PAIRS:
            founders.deliver(*pair)
    assert len({node.identity.cluster_id for node in founders.nodes.values()} - {""}) == 1
    assert all(node.identity.cluster_id for node in founders.nodes.values())


def test_a_node_founds_once_all_have_heard_all() -> None:
    """It waits for each of the others by name: to be heard, and to hear the same disks."""
    node = founding("n1", "d1")
    founders = {"n1": "d1", "n2": "d2", "n3": "d3"}
    same = cluster_id_of(founders, PEERS)
    assert node.waits_for() == ("n2 (not heard)", "n3 (not heard)")
    assert (node.view(), node.decide()) == ("", None)
    node.hear("n2", greeting("d2", view=same))
    node.hear("n3", greeting("d3"))
    assert node.view() == same
    assert node.waits_for() == ("n3 (hears other disks, or not all of them)",)
    assert node.decide() is None
    node.hear("n3", greeting("d3", view=same))
    assert node.waits_for() == ()
    node.forget("n3")
    assert node.waits_for() == ("n3 (not heard)",), "it may come back as another disk"
    node.hear("n3", greeting("d3", view=same))
    identity = node.decide()
    assert identity is not None
    assert identity.founders == founders
    assert identity.cluster_id == cluster_id_of(founders, PEERS)
    assert len(identity.cluster_id) == 32


def test_nodes_that_list_other_peers_found_nothing() -> None:
    """The disagreement is told, with what the other one lists."""
    node = founding("n1", "d1")
    node.hear("n2", greeting("d2"))
    node.hear("n3", greeting("d3", peers=["n3=elsewhere:1"]))
    assert node.waits_for() == ("n3 (lists other peers: n3=elsewhere:1)",)
    assert node.decide() is None


def test_an_empty_disk_joins_the_cluster_that_there_is() -> None:
    """One member's word is enough, and its founders stand, this disk among them or not."""
    node = founding("n1", "new")
    founders = {"n1": "old", "n2": "d2", "n3": "d3"}
    node.hear("n3", greeting("d3", cluster_id="c", founders=founders))
    identity = node.decide()
    assert identity is not None
    assert (identity.cluster_id, identity.founders) == ("c", founders)
    assert identity.incarnation == "new"


def test_no_second_cluster_is_founded_beside_a_living_member_of_the_first() -> None:
    """A peer in a cluster without this node is waited for, not passed by."""
    node = founding("n1", "d1")
    node.hear("n2", greeting("d2"))
    node.hear("n3", greeting("d3", cluster_id="c", founders={"n3": "d3", "n2": "d2"}))
    assert node.decide() is None
    assert node.waits_for() == ("n3 (its cluster was founded without this node)",)


@pytest.mark.parametrize("others", [("n1",), ("n1", "n2", "n4", "n5")])
def test_an_empty_disk_joins_no_cluster_of_other_members_than_it_lists(
    others: tuple[str, ...],
) -> None:
    """Once admitted it would take two of three for a majority where three of five are one."""
    node = founding("n3", "a")
    founders = dict.fromkeys((*others, "n3"), "a")
    node.hear("n1", greeting("a", cluster_id="c", founders=founders))
    assert node.decide() is None
    who = ", ".join(founders)
    assert node.waits_for() == (f"n1 (its cluster has the members {who})", "n2 (not heard)")


def test_only_peers_are_heard() -> None:
    """A greeting of somebody else is a mistake of ours."""
    with pytest.raises(AssertionError):
        founding("n1", "d1").hear("n9", greeting("d9"))


def test_the_id_depends_on_every_disk_and_on_the_peers() -> None:
    """Other disks, or other places, are another cluster; the order means nothing."""
    one = cluster_id_of({"a": "1", "b": "2"}, ["p", "q"])
    assert cluster_id_of({"b": "2", "a": "1"}, ["q", "p"]) == one
    assert cluster_id_of({"a": "1", "b": "3"}, ["p", "q"]) != one
    assert cluster_id_of({"a": "1", "b": "2"}, ["p", "r"]) != one


# --- whose word counts


def admissions() -> Admissions:
    """Return what n1 knows with its first disk, the others being there with theirs."""
    return Admissions(me="n1", incarnation="d1", present={"n2": "d2", "n3": "d3"})


STATE = genesis("c", {"n1": "d1", "n2": "d2", "n3": "d3"})


def test_founders_count_with_the_disks_they_founded_with() -> None:
    """Nobody else does."""
    known = admissions()
    assert all(known.counts(member, STATE, {}) for member in MEMBERS)
    assert not known.counts("n9", STATE, {}) or known.admitted("n9", STATE, {}) == ""
    known.present["n2"] = "new"
    assert not known.counts("n2", STATE, {})
    del known.present["n3"]
    assert not known.counts("n3", STATE, {}), "who isn't there has no say"


def test_a_replacement_counts_from_its_entry_on_and_the_old_disk_never_again() -> None:
    """The applied state decides, for oneself as for others."""
    known = admissions()
    state = replaced(STATE, 5, "n2", "new")
    assert not known.counts("n2", state, {})
    assert known.is_retired("n2", "d2", state)
    known.present["n2"] = "new"
    assert known.counts("n2", state, {})
    assert not known.is_retired("n2", "new", state)
    assert not known.is_retired("n9", "d9", state)
    assert not known.counts("n1", replaced(STATE, 5, "n1", "new"), {})


def test_a_note_counts_while_the_state_is_older() -> None:
    """What this disk noted outlives a state that it has lost, until the state is newer."""
    known = admissions()
    notes = {"n2": Note(7, "new")}
    known.present["n2"] = "new"
    assert known.counts("n2", STATE, notes)
    assert known.admitted("n2", replaced(STATE, 9, "n2", "newest"), notes) == "newest"
    assert known.admitted("n2", replaced(STATE, 7, "n2", "same"), notes) == "same"
    empty = genesis("c", {})
    assert known.admitted("n2", empty, notes) == "new"
    assert known.admitted("n2", empty, {}) == ""


def test_a_disk_that_has_forgotten_does_not_count() -> None:
    """Its incarnation is right, and its word still worth nothing."""
    known = admissions()
    known.amnesiac.add("n3")
    assert not known.counts("n3", STATE, {})
