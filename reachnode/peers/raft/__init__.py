"""Consensus: the one room that knows PySyncObj."""
