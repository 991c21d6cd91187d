"""Consensus: one replicated log on PySyncObj, made safe from the outside.

Read `core.py` first: it joins the parts, knows no thread and no socket, and is what the
simulator drives. `replica.py` carries its wishes out in trio. Only `engine.py` touches
the library's private parts.

The library decides elections, replication and commitment. Everything around that is
ours, for the reasons given in `docs/decisions/0002-pysyncobj-as-engine.md`:

- `journal.py`, `storage.py`, `disk.py`: what is on disk, and when it is known to be.
- `held.py`: what may not be said before the disk says so.
- `guards.py`, `ballot.py`: what the library gets wrong on the wire, and pre-vote.
- `identity.py`: which disk counts as which voter; how a cluster begins.
- `snapshot.py`, `transfer.py`: the whole state, written and received in slices.
- `proposals.py`: changes on their way into the log, with three outcomes.
"""
