"""The consensus library, tamed."""

import subprocess
import sys
from collections import deque
from typing import Any

import pysyncobj.syncobj as library
import pytest

from reachnode.peers.raft.disk import Disk, Performed
from reachnode.peers.raft.engine import SUPPORTED_VERSION, Engine, PeerNode
from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.opening import NO_OP, REGULAR, Entry, Opening, Times
from tests.peers.raft.clocks import ManualSources

MEMBERS = ("n1", "n2", "n3")
COMMAND = REGULAR + b"x"


class Member:
    """An engine on a disk that is always fast, with notes of what it did."""

    def __init__(
        self,
        me: str = "n1",
        others: tuple[str, ...] = (),
        *,
        base: tuple[int, int] = (1, 0),
        entries: tuple[Entry, ...] = (),
        commit_index: int = 1,
        term: int = 0,
    ) -> None:
        self.applied: list[bytes] = []
        self.roles: list[str] = []
        self.sent: deque[tuple[str, dict[str, Any]]] = deque()
        self.sources = ManualSources(me)
        disk = Disk(lambda writes, _: Performed(count=len(writes)))
        self.journal = Journal(
            disk, base=base, entries=entries, term=term, voted_for=None, notes={}
        )
        self.engine = Engine(
            Opening(
                member=me,
                others=others,
                applied_index=base[0],
                commit_index=commit_index,
                times=Times(),
            ),
            log=self.journal,
            sources=self.sources,
            apply=self.applied.append,
            send=lambda peer, message: self.sent.append((peer, message)),
            on_role=self.roles.append,
        )

    def wait(self, seconds: float = 1.0) -> None:
        """Let time pass, and tick."""
        self.sources.clock.at += seconds
        self.engine.tick()


class Trio:
    """Three members and what is under way between them."""

    def __init__(self) -> None:
        self.members = {me: Member(me, tuple(set(MEMBERS) - {me})) for me in MEMBERS}
        for me, member in self.members.items():
            for peer in set(MEMBERS) - {me}:
                member.engine.connect(peer)

    def deliver(self) -> None:
        """Deliver until nothing is under way."""
        while any(member.sent for member in self.members.values()):
            for me in MEMBERS:
                while self.members[me].sent:
                    to, message = self.members[me].sent.popleft()
                    self.members[to].engine.receive(me, message)

    def elect(self, me: str = "n1") -> Engine:
        """Let a member campaign and win."""
        engine = self.members[me].engine
        engine.election_at = 0.0
        engine.tick()
        self.deliver()
        assert engine.is_leader
        self.tick()
        return engine

    def tick(self) -> None:
        """Let a heartbeat's time pass everywhere."""
        for me in MEMBERS:
            self.members[me].wait(0.1)
        self.deliver()


def test_another_version_of_the_library_is_not_started_with() -> None:
    """It may have moved any of what is touched here."""
    assert SUPPORTED_VERSION == "0.3.17"
    code = (
        "import pysyncobj.version as it; it.VERSION = '0.3.18'; import reachnode.peers.raft.engine"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert (
        "engine_mismatch: pysyncobj 0.3.18 is installed, but reachnode knows 0.3.17 only"
        in done.stderr
    )


def test_pickle_is_out_of_reach() -> None:
    """Whatever of the library would load or dump one raises instead."""
    pickle: Any = library.pickle
    for name in ("loads", "dumps", "to_bytes"):
        with pytest.raises(AssertionError, match="pickle was reached"):
            getattr(pickle, name)(b"\x80\x04.")
    member = Member("n1", ("n2",))
    part = {"type": "append_entries", "term": 1, "commit_index": 1, "prevLogIdx": 1}
    part |= {"prevLogTerm": 0, "data": b"\x80\x04."}
    member.engine.receive("n2", part | {"transmission": "start"})
    with pytest.raises(AssertionError, match="pickle was reached"):
        member.engine.receive("n2", part | {"transmission": "finish"})


def test_the_clock_the_dice_and_the_rest_are_ours() -> None:
    """The library's globals are those of the engine that was entered last."""
    one, other = Member("n1", ("n2",)), Member("n2", ("n1",))
    globals_: Any = library
    for member in (one, other, one):
        member.engine.tick()
        assert globals_.monotonicTime() == pytest.approx(member.sources.clock.at)
        state = member.sources.draw.getstate()
        drawn = globals_.random.random()
        member.sources.draw.setstate(state)
        assert drawn == member.sources.draw.random()
        assert globals_.createJournal("any") is member.journal
    assert globals_.PIPE_NOTIFIER_ENABLED is False
    poller = globals_.createPoller("auto")
    poller.subscribe(1, lambda *_: None, 1)
    poller.unsubscribe(1)
    assert poller.poll(0.0) is None


def test_the_library_cannot_change_membership() -> None:
    """No message from outside, and nothing inside, reaches its own transport."""
    bridge = Member("n1", ("n2",)).engine._bridge
    bridge.setOnUtilityMessageCallback("add", lambda *_: None)
    assert bridge._onUtilityMessageCallbacks == {}
    for change in (bridge.addNode, bridge.dropNode):
        with pytest.raises(AssertionError, match="n9"):
            change(PeerNode("n9"))


def test_members_hash_alike_in_every_process() -> None:
    """The order in which the leader sends must not depend on the process."""
    assert hash(PeerNode("n1")) == 3_950_597_356
    assert {PeerNode("n1"), PeerNode("n1")} == {PeerNode("n1")}


def test_a_lone_voter_leads_and_commits() -> None:
    """What it appends is applied in a tick, in order and once."""
    member = Member()
    member.wait()
    assert member.engine.is_leader
    assert member.engine.leader == "n1"
    place = member.engine.append(COMMAND)
    member.engine.append(COMMAND + b"y")
    member.engine.tick()
    assert place == (3, 1)
    assert member.applied == [NO_OP, COMMAND, COMMAND + b"y"]
    assert member.engine.applied_index == member.engine.commit_index == 4
    assert member.roles[-1] == "leader"


def test_an_engine_goes_on_where_it_stopped() -> None:
    """Committed entries are applied again from the base, the others wait for a leader."""
    entries = tuple((COMMAND, index, 2) for index in (6, 7, 8))
    member = Member(others=("n2",), base=(5, 2), entries=entries, commit_index=7, term=3)
    member.engine.tick()
    assert member.applied == [COMMAND, COMMAND]
    assert (member.engine.term, member.engine.is_leader) == (3, False)
    beyond = Member(others=("n2",), base=(5, 2), entries=entries, commit_index=99)
    assert beyond.engine.commit_index == 8, "never beyond the log"


def test_three_members_elect_and_agree() -> None:
    """What the leader appends is applied everywhere."""
    three = Trio()
    leader = three.elect("n2")
    leader.append(COMMAND)
    three.deliver()
    three.tick()
    three.tick()
    assert [member.applied for member in three.members.values()] == [[NO_OP, COMMAND]] * 3
    assert {member.engine.leader for member in three.members.values()} == {"n2"}
    assert leader.match_index("n1") == 3
    assert leader.next_index("n1") == 4
    assert leader.append_at > three.members["n2"].sources.clock.at
    assert three.members["n1"].engine.next_index("n2") is None


def test_a_leader_that_steps_down_keeps_its_term() -> None:
    """And knows of no leader, until another one campaigns."""
    three = Trio()
    leader = three.elect("n1")
    leader.step_down()
    assert (leader.is_leader, leader.leader, leader.term) == (False, None, 1)
    leader.step_down()
    assert three.members["n1"].roles[-1] == "follower"
    assert three.elect("n3").term == 2


def test_a_higher_term_is_adopted_without_a_vote() -> None:
    """It deposes a leader; nobody gets a vote by it."""
    three = Trio()
    leader = three.elect("n1")
    three.members["n1"].sent.clear()
    leader.adopt_term("n2", 9)
    assert (leader.term, leader.is_leader) == (9, False)
    assert not three.members["n1"].sent
    assert three.members["n1"].journal.getVotedForNodeId() is None


def test_leadership_is_transferred_to_whoever_has_everything() -> None:
    """The one that is asked campaigns at once; nobody else is asked."""
    three = Trio()
    leader = three.elect("n1")
    three.tick()
    assert leader.transfer("n2")
    assert not three.members["n2"].engine.is_transferring
    three.deliver()
    three.members["n2"].engine.tick()
    three.deliver()
    assert three.members["n2"].engine.is_leader
    assert not three.members["n1"].engine.is_leader
    three.members["n2"].engine.disconnect("n3")
    three.members["n2"].engine.append(COMMAND)
    assert not three.members["n2"].engine.transfer("n3"), "it lacks the last entry"


def test_entries_are_sent_to_the_connected_alone() -> None:
    """And again once the connection is back."""
    three = Trio()
    leader = three.elect("n1")
    sent = three.members["n1"].sent
    leader.disconnect("n3")
    assert (leader.is_connected("n2"), leader.is_connected("n3")) == (True, False)
    leader.append(COMMAND)
    assert {to for to, _ in sent} == {"n2"}
    leader.connect("n3")
    leader.append(COMMAND)
    assert {to for to, _ in sent} == {"n2", "n3"}


# --- corrections


def test_the_engine_is_never_sent_before_the_base() -> None:
    """There it would want to send a snapshot of its own."""
    three = Trio()
    leader = three.elect("n1")
    leader.append(COMMAND)
    three.members["n1"].journal.trim(2)
    leader.set_next_index("n2", 3)
    assert leader.next_index("n2") == 3
    for index in (2, 1):
        with pytest.raises(AssertionError, match="its own snapshot"):
            leader.set_next_index("n2", index)


def test_what_a_former_disk_acknowledged_is_forgotten() -> None:
    """It is counted no more; a member that never led has nothing to forget."""
    three = Trio()
    leader = three.elect("n1")
    assert leader.match_index("n2") == 2
    leader.forget_match("n2")
    assert leader.match_index("n2") == 0
    three.members["n3"].engine.forget_match("n2")
    assert three.members["n3"].engine.match_index("n2") == 0


def test_an_engine_goes_on_from_a_snapshot() -> None:
    """Nothing that it covers is applied any more, and all of it is committed."""
    member = Member(others=("n2",))
    member.journal.install(index=7, term=2)
    member.engine.installed(7)
    assert (member.engine.applied_index, member.engine.commit_index) == (7, 7)
    member.engine.tick()
    assert member.applied == []
    with pytest.raises(AssertionError):
        member.engine.installed(8)


def test_only_a_leader_appends() -> None:
    """Anything else is a mistake of ours."""
    member = Member(others=("n2",))
    with pytest.raises(AssertionError):
        member.engine.append(COMMAND)


def test_when_a_majority_was_heard_is_known_of_leaders_alone() -> None:
    """Of a former one it is when it last led; a lone voter is a majority at any time."""
    three = Trio()
    leader = three.elect("n1")
    heard_at = leader.majority_heard_at()
    assert heard_at is not None
    assert heard_at <= three.members["n1"].sources.clock.at
    leader.step_down()
    assert leader.majority_heard_at() == heard_at
    assert three.members["n2"].engine.majority_heard_at() is None
    alone = Member()
    assert alone.engine.majority_heard_at() is None
    alone.wait()
    assert alone.engine.majority_heard_at() == pytest.approx(alone.sources.clock.at)
