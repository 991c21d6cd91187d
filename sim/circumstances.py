"""What a run is under: how many members, how slow everything is, which faults there are."""

import random
from dataclasses import dataclass, replace

from reachnode.peers.raft.safeguards import ALL_ON, Safeguards


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a seed draws before its run begins. Times in seconds."""

    voters: int = 3
    chaos_seconds: float = 60.0
    sync_seconds: tuple[float, float] = (0.0002, 0.02)
    """The least and the most a sync takes."""
    delay_seconds: tuple[float, float] = (0.0003, 0.0023)
    """The least and the most a message takes."""
    change_every_seconds: float = 0.15
    fault_every_seconds: float = 1.0
    snapshot_entries: int = 40
    keep_entries: int = 5
    disk_stalls: bool = True
    wipes: bool = False
    full_disks: bool = False
    sync_errors: bool = False
    pauses: bool = True
    power: bool = True
    """Whether a crash may take what was not synced; else only the process dies."""
    cuts: bool = True
    aimed: bool = True
    """Whether faults are aimed at votes, elections and replaced tails."""
    strandings: bool = True
    """Whether leaders are stranded with an entry that the others do without."""
    transfers: bool = True
    """Whether leaders are asked to hand over."""
    early_crashes: bool = False
    """Whether members die while the cluster is being founded."""
    forgetting: bool = False
    """Whether somebody puts an older copy of a data directory back."""
    safeguards: Safeguards = ALL_ON


def draw_circumstances(seed: int, **fixed: object) -> Circumstances:
    """Return the circumstances of a seed; `fixed` overrules what it draws."""
    draw = random.Random(f"circumstances {seed}")
    slow = draw.random() < 0.15
    drawn = Circumstances(
        voters=draw.choice((3, 3, 3, 5)),
        sync_seconds=(0.005, 0.15) if slow else (0.0002, draw.choice((0.002, 0.02))),
        delay_seconds=(0.0003, draw.choice((0.001, 0.0023, 0.02))),
        change_every_seconds=draw.choice((0.1, 0.2, 0.4)),
        fault_every_seconds=draw.choice((0.7, 1.0, 2.0)),
        snapshot_entries=draw.choice((1, 20, 40, 100)),
        keep_entries=draw.choice((0, 0, 5, 20)),
        disk_stalls=draw.random() < 0.5,
        wipes=draw.random() < 0.4,
        full_disks=draw.random() < 0.3,
        sync_errors=draw.random() < 0.3,
        pauses=draw.random() < 0.5,
        early_crashes=draw.random() < 0.3,
        forgetting=draw.random() < 0.3,
    )
    return replace(drawn, **fixed)  # type: ignore[arg-type]  # names are checked by replace
