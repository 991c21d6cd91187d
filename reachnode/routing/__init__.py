"""Decisions about who is asked: which instances fit, which can be reached, in what order.

Read `discover.py` first. Nothing here knows a clock, dice or the network; what was seen of
instances comes in as sightings.
"""
