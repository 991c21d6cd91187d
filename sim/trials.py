"""Scenes for safeguards that chaos notices late or never, since another rule stands by.

Each plays one scene on a quiet cluster and returns what was violated: nothing with every
safeguard on, something with its own one off. The message that a safeguard is about is
played into the scene where no fault of an ordered connection could bring it about.
"""

from collections.abc import Callable, Mapping

from reachnode.peers.raft.messages import Ack, SnapshotPiece, Vote, encode
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.storage import MARK, snapshot_name
from reachnode.registry.codec import encode_batch
from sim.stage import Stage

Trial = Callable[[int, Safeguards], list[str]]

NOTHING = encode_batch([])
FLAPPING_SECONDS = 30.0
LEADERS_LOST_MAX = 3
TERMS_MAX = 3
DIVERGENT_ENTRIES = 60
CATCH_UP_SECONDS = 1.5
REJOIN_SECONDS = 5.0
SENT_AGAIN_MAX = 1.2
"""Entries sent per entry and follower, at most."""


def flapping_link(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: a follower whose connections come and go costs no leader."""
    stage = Stage(seed, safeguards)
    follower = stage.others(stage.leader)[0]
    term, count = stage.running(stage.leader).engine.term, stage.leaders_count
    draw = stage.world.draw
    ends_at = stage.now + FLAPPING_SECONDS
    while stage.now < ends_at:
        stage.isolate(follower)
        stage.run(draw.uniform(0.3, 2.5))
        stage.heal(follower)
        stage.run(draw.uniform(0.1, 1.0))
    lost = stage.leaders_count - count
    terms = stage.running(stage.wait_for_leader()).engine.term - term
    stage.promise(f"{lost} leaders lost", kept=lost <= LEADERS_LOST_MAX)
    stage.promise(f"{terms} terms", kept=terms <= TERMS_MAX)
    return stage.verdict()


def stalling_disks(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: followers whose disks stall cost no leader, for they go on answering."""
    stage = Stage(seed, safeguards)
    count, draw = stage.leaders_count, stage.world.draw
    ends_at = stage.now + FLAPPING_SECONDS
    while stage.now < ends_at:
        leader = stage.wait_for_leader()
        for follower in stage.others(leader):
            stage.member(follower).stalled_until = stage.now + draw.uniform(0.8, 2.5)
        for _ in range(4):
            stage.ask(stage.wait_for_leader())
            stage.run(draw.uniform(0.1, 0.5))
    lost = stage.leaders_count - count
    stage.promise(f"{lost} leaders lost", kept=lost <= LEADERS_LOST_MAX)
    return stage.verdict()


def long_divergence(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: a log that diverged by many entries is mended in a few messages."""
    stage = Stage(seed, safeguards)
    old = stage.leader
    stage.isolate(old)
    for _ in range(DIVERGENT_ENTRIES):
        stage.member(old).enter(stage.core(old).append, NOTHING)
    new = stage.wait_for_leader(besides=[old])
    assert stage.change(new, DIVERGENT_ENTRIES)
    # What waits in the connection would mend the log by itself.
    for other in stage.others(old):
        stage.world.network.break_off(old, other)
    stage.heal(old)
    stage.wait(lambda: stage.world.network.is_up(old, new))
    began_at = stage.now
    stage.wait(lambda: stage.running(old).machine.index >= stage.end(new))
    took = stage.now - began_at
    stage.promise(f"it took {took:.1f} s", kept=took <= CATCH_UP_SECONDS)
    return stage.verdict()


def entries_sent_once(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: on a slow network an entry is on its way to a follower once, not again and again."""
    stage = Stage(seed, safeguards, delay_seconds=(0.02, 0.03))
    sent = 0

    def count(line: str) -> None:
        nonlocal sent
        sent += line.count("entries=[(")

    appended = stage.end(stage.leader)
    stage.world._tell = count
    for _ in range(100):
        stage.ask(stage.leader)
        stage.member(stage.leader).enter(stage.core(stage.leader).append, NOTHING)
        stage.run(0.005)
    stage.run(1.0)
    appended = stage.end(stage.leader) - appended
    followers = len(stage.others(stage.leader))
    ratio = sent / appended / followers
    stage.promise(f"{ratio:.2f} sendings per entry", kept=ratio <= SENT_AGAIN_MAX)
    return stage.verdict()


def one_term_ahead(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: a follower that is a term ahead of its leader rejoins."""
    stage = Stage(seed, safeguards)
    leader, network = stage.leader, stage.world.network
    ahead: list[str] = []

    def hide(member: str, role: str, _term: int) -> None:
        """Let the leader be heard again, and nothing of the campaign be."""
        if role == "candidate" and not ahead:
            ahead.append(member)
            for other in stage.others(member):
                stage.world.timeline.after(0, network.break_off, member, other)
            stage.world.timeline.after(0, stage.heal, leader)

    stage.world.on_role = hide
    stage.cut(*[(leader, other) for other in stage.others(leader)])
    if not stage.wait(lambda: bool(ahead), 1.0):
        return stage.verdict()
    stage.run(REJOIN_SECONDS)
    stage.change(stage.wait_for_leader())
    stage.run(1.0)
    ends = {name: stage.running(name).machine.index for name in sorted(stage.world.members)}
    stage.promise(f"{ahead[0]} is left behind: {ends}", kept=len(set(ends.values())) == 1)
    return stage.verdict()


def doubled_vote(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: one voter's word doesn't elect anybody, however often it is heard."""
    stage = Stage(seed, safeguards, voters=5)
    candidates: list[tuple[str, int]] = []

    def hide(member: str, role: str, term: int) -> None:
        if role == "candidate" and not candidates:
            candidates.append((member, term))
            stage.world.timeline.after(0, stage.isolate, member)

    stage.world.on_role = hide
    stage.member(stage.leader).kill(power=False)
    stage.wait(lambda: bool(candidates))
    candidate, term = candidates[0]
    voter = stage.others(candidate, stage.leader)[0]
    stage.run(0.01)
    for _ in range(2):
        stage.member(candidate).deliver(voter, encode(Vote(term + 1)))
    leads = stage.running(candidate).engine.is_leader
    stage.promise("two of five elected a leader", kept=not leads)
    return stage.verdict()


def late_acknowledgement(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: what a follower acknowledged in a former term says nothing of this one."""
    stage = Stage(seed, safeguards)
    former, term = stage.leader, stage.running(stage.leader).engine.term
    stage.isolate(former)
    stage.change(stage.wait_for_leader(besides=[former]))
    stage.heal(former)
    stage.run(1.0)
    for _ in range(20):
        leader = stage.wait_for_leader()
        if leader == former:
            break
        stage.member(leader).enter(stage.core(leader).hand_over)
        stage.run(0.5)
    if stage.wait_for_leader() != former:
        return stage.verdict()
    follower = stage.others(former)[0]
    stage.isolate(former)
    stage.ask(former)
    stage.run(0.05)
    end = stage.end(former)
    late = Ack(term, end + 1, reset=False, success=True)
    stage.member(former).deliver(follower, encode(late))
    stage.run(0.05)
    committed = stage.running(former).engine.commit_index
    stage.promise(f"{former} counts {end} as committed", kept=committed < end)
    return stage.verdict()


def late_snapshot(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: a snapshot older than what a follower has applied takes nothing back."""
    stage = Stage(seed, safeguards, snapshot_entries=10)
    leader = stage.leader
    follower = stage.others(leader)[0]
    assert stage.change(leader, 12)
    stage.run(0.5)
    upkeep = stage.core(leader).upkeep
    assert upkeep.snapshot is not None
    old = upkeep.snapshot[0]
    data = stage.member(leader).files.read(snapshot_name(old))
    assert stage.change(leader, 15)
    stage.run(0.5)
    before, end = stage.running(follower).machine.index, stage.end(follower)
    piece = SnapshotPiece(
        term=stage.running(leader).engine.term, index=old, offset=0, data=data, is_last=True
    )
    stage.member(follower).deliver(leader, encode(piece))
    after = stage.running(follower).machine.index
    stage.promise(f"from {before} back to {after}", kept=after >= before)
    stage.promise(
        f"of {end} entries {stage.end(follower)} are left", kept=stage.end(follower) >= end
    )
    return stage.verdict()


def kept_tail(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: entries that a follower keeps behind a snapshot are not acknowledged with it."""
    stage = Stage(seed, safeguards)
    old = stage.leader
    assert stage.change(old, 3)
    stage.run(0.5)
    index = stage.running(old).machine.index
    for name in stage.others(old):
        raft = stage.running(name)
        term = raft.journal.term_at(raft.machine.index)
        assert term is not None
        assert raft.machine.index == index
        stage.core(name).upkeep.maker.begin(raft.machine.state, index=index, term=term)
    stage.run(1.0)
    stage.isolate(old)
    for _ in range(3):
        stage.member(old).enter(stage.core(old).append, NOTHING)
    stage.run(0.1)
    # What is committed is noted without a sync: the note may be gone with the power.
    stage.member(old).kill(power=False)
    stage.member(old).files.remove(MARK)
    stage.member(old).start()
    first = stage.wait_for_leader(besides=[old])
    stage.run(0.5)

    def stall(member: str, role: str, _term: int) -> None:
        """Let nobody but the second leader and the one with the tail store anything."""
        if role == "leader" and member not in (first, old):
            stage.member(first).stalled_until = stage.now + 5.0
            stage.world.timeline.after(0, stage.heal, old)

    stage.world.on_role = stall
    stage.member(first).enter(stage.core(first).hand_over)
    stage.run(4.0)
    return stage.verdict()


def resent_entries(seed: int, safeguards: Safeguards) -> list[str]:
    """Promise: entries that come a second time are not cut and added again."""
    stage = Stage(seed, safeguards)
    leader = stage.leader
    follower, behind = stage.others(leader)
    assert stage.change(leader, 3)
    stage.isolate(behind)
    assert stage.change(leader, 2)
    index = stage.end(leader)
    stage.running(leader).engine.set_next_index(follower, index - 1)
    stage.ask(leader)
    stage.wait(lambda: stage.world.rare["tail_truncated"] > 0, 0.02)
    stage.member(follower).kill(power=True)
    stage.isolate(leader)
    stage.heal(behind)
    stage.run(0.1)
    stage.member(follower).start()
    stage.run(4.0)
    held = stage.end(follower)
    stage.promise(f"{follower} holds {held} of {index}", kept=held >= index)
    return stage.verdict()


TRIALS: Mapping[str, Trial] = {
    trial.__name__: trial
    for trial in (
        flapping_link,
        stalling_disks,
        long_divergence,
        entries_sent_once,
        one_term_ahead,
        doubled_vote,
        late_acknowledgement,
        late_snapshot,
        kept_tail,
        resent_entries,
    )
}
"""Every trial by its name."""
