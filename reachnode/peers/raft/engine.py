"""PySyncObj, tamed: the one module that touches its private parts.

Two things are done here. The library's module globals (clock, dice, journal maker, poller,
pickle) are replaced once per process, since it looks them up at each use. And its private
attributes are given names and types, so that the rest of the room reads like Raft.

Both depend on the exact version, which is asserted at import: another release may have
moved any of it, and a node that guesses about consensus must not start.

Of the library's own features these are never reached: its transport, journal, snapshots,
command forwarding, membership changes, code versions, threads and `pickle`.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol
from zlib import crc32

import pysyncobj.syncobj as library
from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.node import Node
from pysyncobj.transport import Transport
from pysyncobj.version import VERSION

from reachnode.peers.raft.failstop import failstop
from reachnode.peers.raft.opening import APPEND_BYTES_MAX, NEVER_SECONDS, Opening
from reachnode.world.sources import Sources

SUPPORTED_VERSION = "0.3.17"
if VERSION != SUPPORTED_VERSION:
    raise failstop(
        "engine_mismatch",
        f"pysyncobj {VERSION} is installed, but reachnode knows {SUPPORTED_VERSION} only",
    )


class EngineLog(Protocol):
    """The journal as the library calls it (its names, not ours)."""

    def add(self, command: bytes, idx: int, term: int) -> None:
        """Append an entry."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def deleteEntriesFrom(self, entryFrom: int) -> None:  # noqa: N802, N803 - the library's names
        """Cut the tail, from a place in the log."""
        ...

    def deleteEntriesTo(self, entryTo: int) -> None:  # noqa: N802, N803 - the library's names
        """Forget the entries before a place in the log."""
        ...

    def __getitem__(self, idx: Any) -> Any: ...
    def __len__(self) -> int: ...


class _Current:
    """Whose code is running: the library's globals are shared by every engine of a process."""

    sources: Sources | None = None
    log: EngineLog | None = None


def _random() -> float:
    """Return a draw in [0, 1) from the dice of the engine that is running."""
    assert _Current.sources is not None
    return _Current.sources.draw.random()


def _forbidden(*_: object, **__: object) -> None:
    """Refuse what must be unreachable; reaching it is a fault of ours."""
    raise AssertionError("pickle was reached through the consensus library")


class _NullPoller:
    """Satisfies the library, which polls sockets that it does not have here."""

    def subscribe(self, *_: object) -> None:
        """Ignore a descriptor."""

    def unsubscribe(self, *_: object) -> None:
        """Ignore a descriptor."""

    def poll(self, _timeout: float) -> None:
        """Return at once."""


def _untyped(value: object) -> Any:
    """Return the same, seen without types: the library has none."""
    return value


def _take_over() -> None:
    """Replace the library's globals. Idempotent, and needed once per process."""
    globals_ = _untyped(library)
    globals_.random = SimpleNamespace(random=_random)
    globals_.createPoller = lambda _kind: _NullPoller()
    globals_.createJournal = lambda _file: _Current.log
    globals_.PIPE_NOTIFIER_ENABLED = False
    globals_.pickle = SimpleNamespace(dumps=_forbidden, loads=_forbidden, to_bytes=_forbidden)


_take_over()
_GLOBALS = _untyped(library)


class PeerNode(Node):
    """A member by its id. Strings hash differently in each process; this must not."""

    def __init__(self, member: str) -> None:
        super().__init__(member)  # type: ignore[no-untyped-call]  # the library has no types
        self._hash = crc32(member.encode())

    def __hash__(self) -> int:
        return self._hash


class _Bridge(Transport):
    """The library's way out: every message goes to one function."""

    def __init__(self, send: Callable[[str, dict[str, Any]], None]) -> None:
        super().__init__(None, None, None)  # type: ignore[no-untyped-call]  # no types
        self._send = send

    def send(self, node: PeerNode, message: dict[str, Any]) -> bool:
        """Hand a message over; never raises and never blocks."""
        self._send(node.id, message)
        return True

    def setOnUtilityMessageCallback(self, message: str, callback: object) -> None:  # noqa: N802 (the library's name)
        """Register nothing: no message from the wire may change membership or versions."""

    def addNode(self, node: PeerNode) -> None:  # noqa: N802 (the library's name)
        """Refuse: membership is fixed when the engine is made."""
        raise AssertionError(f"the library added {node.id}")

    def dropNode(self, node: PeerNode) -> None:  # noqa: N802 (the library's name)
        """Refuse: membership is fixed when the engine is made."""
        raise AssertionError(f"the library dropped {node.id}")


class _Library(SyncObj):
    """The library's node, whose apply step hands each command to us undecoded."""

    def __init__(self, apply: Callable[[bytes], None], *args: object, **kwargs: object) -> None:
        self._apply = apply
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]  # no types

    def _SyncObj__doApplyCommand(self, command: bytes) -> None:  # noqa: N802 (the library's name)
        self._apply(command)

    def _checkCommandsToApply(self) -> None:  # noqa: N802 (the library's name)
        """Skip the library's own queue, which nobody fills: see `Engine.append`."""

    def _SyncObj__tryLogCompaction(self) -> None:  # noqa: N802 (the library's name)
        """Skip the library's own snapshots: `upkeep.py` makes ours."""


class Engine:
    """One member's consensus engine.

    Not re-entrant: `apply` and `send` are called from inside `tick`, `receive` and
    `append`, and must not call back into those.

    Args:
        opening: Where it begins.
        log: The journal, already filled with what the disk holds (at least one entry).
        apply: Receives each committed command, in order, once per start.
        send: Receives (peer, message) for the wire; must not raise.
        on_role: Called with the new role when it changes.
    """

    def __init__(
        self,
        opening: Opening,
        *,
        log: EngineLog,
        sources: Sources,
        apply: Callable[[bytes], None],
        send: Callable[[str, dict[str, Any]], None],
        on_role: Callable[[str], None],
    ) -> None:
        assert len(log) >= 1
        self._sources = sources
        self._now = sources.now
        self._log = log
        self._nodes = {peer: PeerNode(peer) for peer in sorted(opening.others)}
        self._bridge: Any = _untyped(_Bridge)(send)
        self._on_role = on_role
        self.is_leader = False
        """Whether this member leads, as far as it knows."""
        self._enter()
        times = opening.times
        conf = SyncObjConf(
            autoTick=False,
            appendEntriesUseBatch=False,
            raftMinTimeout=times.election_min,
            raftMaxTimeout=times.election_max,
            appendEntriesPeriod=times.heartbeat,
            leaderFallbackTimeout=times.fallback,
            connectionTimeout=max(times.election_max, 3.5),
            commandsWaitLeader=False,
            useFork=False,
            dynamicMembershipChange=False,
            appendEntriesBatchSizeBytes=APPEND_BYTES_MAX,
            logCompactionMinEntries=int(NEVER_SECONDS),
            logCompactionMinTime=NEVER_SECONDS,
            onStateChanged=self._role_changed,
        )
        self._lib: Any = _untyped(_Library)(
            apply,
            PeerNode(opening.member),
            list(self._nodes.values()),
            conf,
            nodeClass=PeerNode,
            transport=self._bridge,
        )
        self._lib._SyncObj__needLoadDumpFile = False
        self._lib._SyncObj__raftLastApplied = opening.applied_index
        self._lib._SyncObj__raftCommitIndex = min(opening.commit_index, log[-1][1])

    # --- what it knows

    @property
    def term(self) -> int:
        """The current term."""
        term: int = self._lib._SyncObj__raftCurrentTerm
        return term

    @property
    def leader(self) -> str | None:
        """The leader this member last followed in the current term; it may be long gone."""
        node = self._lib._SyncObj__raftLeader
        return None if node is None else str(node.id)

    @property
    def commit_index(self) -> int:
        """Index up to which entries are known to be committed."""
        index: int = self._lib._SyncObj__raftCommitIndex
        return index

    @property
    def applied_index(self) -> int:
        """Index up to which entries have been applied."""
        index: int = self._lib._SyncObj__raftLastApplied
        return index

    @property
    def election_at(self) -> float:
        """When this member campaigns unless it hears from a leader."""
        at: float = self._lib._SyncObj__raftElectionDeadline
        return at

    @election_at.setter
    def election_at(self, at: float) -> None:
        self._lib._SyncObj__raftElectionDeadline = at

    @property
    def append_at(self) -> float:
        """When a leader next sends its followers something, if only a heartbeat."""
        at: float = self._lib._SyncObj__newAppendEntriesTime
        return at

    @property
    def is_transferring(self) -> bool:
        """Whether the leader asked this member to take over now."""
        transferring: bool = self._lib._SyncObj__transferInProgress
        return transferring

    def is_connected(self, peer: str) -> bool:
        """Return whether the engine may send to a peer."""
        return self._nodes[peer] in self._lib._SyncObj__connectedNodes

    def next_index(self, peer: str) -> int | None:
        """Return the index the leader sends a follower next; None before it ever led."""
        index: int | None = self._lib._SyncObj__raftNextIndex.get(self._nodes[peer])
        return index

    def match_index(self, peer: str) -> int:
        """Return the index a follower is counted to hold; 0 when unknown."""
        index: int = self._lib._SyncObj__raftMatchIndex.get(self._nodes[peer], 0)
        return index

    def majority_heard_at(self) -> float | None:
        """Return when, at the latest, a majority had answered; None if this never led.

        Of a member that leads no more, when it did so last.
        """
        needed = (len(self._nodes) + 1) // 2
        if not needed:
            return self._sources.now() if self.is_leader else None
        times = sorted(self._lib._SyncObj__lastResponseTime.values(), reverse=True)
        return None if len(times) < needed else float(times[needed - 1])

    # --- what happens to it

    def tick(self) -> None:
        """Act on the time: campaign, commit, apply, step down, send heartbeats."""
        self._enter()
        self._lib.doTick(0)

    def receive(self, peer: str, message: Mapping[str, Any]) -> None:
        """Take a message in the library's own form."""
        self._enter()
        self._bridge._onMessageReceived(self._nodes[peer], message)

    def connect(self, peer: str) -> None:
        """Let the engine send to a peer."""
        self._enter()
        self._bridge._onNodeConnected(self._nodes[peer])

    def disconnect(self, peer: str) -> None:
        """Stop the engine from sending to a peer."""
        self._enter()
        self._bridge._onNodeDisconnected(self._nodes[peer])

    def append(self, command: bytes) -> tuple[int, int]:
        """Append one command as leader and send it at once; return its index and term.

        The library's own queue is passed by: what waits in there has no deadline, and is
        forwarded or dropped without a word when leadership goes.
        """
        assert self.is_leader
        self._enter()
        index, term = self._log[-1][1] + 1, self.term
        self._log.add(command, index, term)
        self._lib._SyncObj__sendAppendEntries()
        return index, term

    def step_down(self) -> None:
        """Stop leading, without a new term: another member may campaign."""
        self._enter()
        if self.is_leader:
            self._lib._SyncObj__setState(library._RAFT_STATE.FOLLOWER)
            self._lib._SyncObj__raftLeader = None

    def adopt_term(self, peer: str, term: int) -> None:
        """Take over a higher term, said in the engine's own language.

        A request for a vote that cannot be granted: no log is behind term -1.
        """
        request = {
            "type": "request_vote",
            "term": term,
            "last_log_index": 0,
            "last_log_term": -1,
        }
        self.receive(peer, request)

    def transfer(self, peer: str) -> bool:
        """Ask a follower that has everything to campaign now; return whether it was asked."""
        self._enter()
        asked: list[int] = []
        self._lib.transferLeadership(self._nodes[peer], lambda _, error: asked.append(error))
        return asked == [0]

    # --- corrections

    def set_next_index(self, peer: str, index: int) -> None:
        """Correct what the leader sends a follower next."""
        assert index > self._log[0][1], "the engine must never want to send its own snapshot"
        self._lib._SyncObj__raftNextIndex[self._nodes[peer]] = index

    def forget_match(self, peer: str) -> None:
        """Count nothing of what a peer's former disk acknowledged."""
        if self._nodes[peer] in self._lib._SyncObj__raftMatchIndex:
            self._lib._SyncObj__raftMatchIndex[self._nodes[peer]] = 0

    def installed(self, index: int) -> None:
        """Go on from a snapshot that covers `index`, the log being replaced already."""
        self._enter()
        end = self._log[-1][1]
        assert self._log[0][1] <= index <= end
        self._lib._SyncObj__raftLastApplied = index
        commit = max(self.commit_index, index)
        self._lib._SyncObj__raftCommitIndex = min(commit, end)

    # --- inside

    def _enter(self) -> None:
        """Point the library's globals at this engine."""
        _Current.sources = self._sources
        _Current.log = self._log
        _GLOBALS.monotonicTime = self._now

    def _role_changed(self, _old: int, new: int) -> None:
        """Translate the library's state numbers."""
        states = library._RAFT_STATE
        self.is_leader = new == states.LEADER
        names = {states.LEADER: "leader", states.CANDIDATE: "candidate"}
        self._on_role(names.get(new, "follower"))
