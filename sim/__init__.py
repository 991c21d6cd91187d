"""The simulator: the real code of reachnode under seeded faults, in virtual time."""
