"""The slow work of a core, in slices: snapshots that let the journal be trimmed, digests.

grown journal -> snapshot begun -> slices -> sealed -> durable -> journal trimmed
every so many entries -> digest of the state -> the leader logs it -> everybody compares
"""

from typing import TYPE_CHECKING

from reachnode.peers.raft.machine import SnapshotMaker, pack_digest

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core, Running


SENDING_FACTOR = 4
"""How many times longer the journal may grow while a snapshot is on its way to a follower: the
next one would take its place, and the follower would have to begin again, for ever."""


class Upkeep:
    """One core's slow work."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self.maker = SnapshotMaker(core.disk)
        self.snapshot: tuple[int, int] | None = None
        """Index and term of the newest durable snapshot."""
        self.snapshots_count = 0
        self._digest: tuple[int, str] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there is a slice to do now."""
        raft = self._core.running
        return raft is not None and (self.maker.is_writing or raft.machine.digests.is_busy)

    def step(self) -> bool:
        """Do one slice; return whether there is more.

        Raises:
            FailStop: The state's digest differs from the leader's.
        """
        raft = self._core.running
        if raft is None:
            return False
        if self.maker.is_writing:
            self.maker.step()
        elif raft.machine.digests.is_busy:
            self._digest = raft.machine.digests.step() or self._digest
        if self._digest is not None and self._core.is_leader:
            index, digest = self._digest
            self._digest = None
            self._core.append_command(pack_digest(index, digest))
        return self.is_busy

    def begin_snapshot(self) -> None:
        """Begin a snapshot when the journal has grown enough."""
        core, raft = self._core, self._core.running
        if raft is None or not self.maker.is_idle:
            return
        journal, index = raft.journal, raft.machine.index
        covered = self.snapshot[0] if self.snapshot is not None else journal.base
        factor = SENDING_FACTOR if core.transfers.sending else 1
        grown = index - covered >= core.settings.snapshot_entries * factor
        heavy = journal.bytes_count >= core.settings.snapshot_bytes * factor and index > covered
        if not grown and not heavy:
            return
        term = journal.term_at(index)
        assert term is not None
        self.maker.begin(raft.machine.state, index=index, term=term)
        if not core.rules.snapshot_before_trim:
            journal.trim(index)

    def finish_snapshot(self) -> None:
        """Trim the journal once the snapshot it relies on is durable."""
        core, raft = self._core, self._core.running
        header = self.maker.take_finished()
        if header is None or raft is None:
            return
        self.snapshot = (header.index, header.term)
        self.snapshots_count += 1
        heavy = raft.journal.bytes_count >= core.settings.snapshot_bytes
        keep = 0 if heavy else core.settings.keep_entries
        index = min(header.index - keep, self._asked_for(raft) - 1)
        if index > raft.journal.base:
            raft.journal.trim(index)

    def _asked_for(self, raft: "Running") -> int:
        """Return the lowest index that is still to be sent, to whoever just took a snapshot."""
        engine = raft.engine
        following = [
            engine.next_index(peer)
            for peer in self._core.membership.others
            if engine.is_leader and engine.is_connected(peer)
        ]
        return min(
            (index for index in following if index is not None), default=raft.journal.end + 1
        )

    def installed(self, index: int, term: int) -> None:
        """Take note of a snapshot that came from the leader."""
        self.maker.abandon()
        self.snapshot = (index, term)
