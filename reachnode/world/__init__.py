"""The outside world: clock, dice, identifiers, network and files.

Everything that can differ between two runs comes through this room, and the simulator
replaces it. No decision is made here.
"""
