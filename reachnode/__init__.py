"""reachnode: find an AI agent by what it can do, and reach it."""

__version__ = "0.1.0"
