"""The replicated state machine: a state, the commands that change it, and its bytes.

Read `apply.py` first. All nodes apply the same commands in the same order and hold the same
state; nothing here knows a clock, chance, the disk or the network.
"""
