"""Bytes to nouns and back: formats and protocols, without sockets, files or clocks."""
