"""The command line: one file for each command of `reachnode`, and what they share.

`sim` is imported here alone, and only inside the function that needs it.
"""
