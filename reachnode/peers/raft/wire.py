"""The way from a core to its peers, as a port: the mesh in a node, links of the simulator."""

from typing import Protocol


class Wire(Protocol):
    """The way to the peers. Nothing here blocks or raises."""

    def consensus(self, peer: str, data: bytes) -> bool:
        """Send on the consensus connection; return whether there is one."""
        ...

    def bulk(self, peer: str, data: bytes) -> bool:
        """Send on the data connection, which never delays consensus."""
        ...

    def drop(self, peer: str) -> None:
        """Break the connections to a peer; it may dial again."""
        ...
