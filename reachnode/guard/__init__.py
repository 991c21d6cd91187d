"""Decisions about what is let through: so far, which endpoints a node may connect to."""
