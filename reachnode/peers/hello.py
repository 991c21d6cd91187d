"""The hello of two nodes: fixed layouts, the proof, and every reason to refuse. No I/O.

Over TLS whose certificate proves nothing, three pieces of fixed size cross:

    client                                     server
      hello (who, lane, nonce)        ------>
                                      <------   hello (who, nonce), proof
      proof                           ------>
                                      <------   ACCEPTED, one byte

A proof is an HMAC over a label of its direction, both hellos byte by byte, and the hash of
the server's certificate as that side sees it. So a proof can't be replayed (the other side's
nonce is fresh), reflected (the labels differ), or passed on by somebody in the middle (the
certificate would be another). Until a proof is verified nothing is parsed but the layout below.

    magic 4 | version 1 | role 1 | lane 1 | node 1+64 | cluster 1+64 | boot 1+64 | nonce 32

A name is its length and its UTF-8 text, filled up with zeros.
"""

import hashlib
import hmac
import struct
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum

MAGIC = b"RNpl"
VERSION = 1
NAME_BYTES_MAX = 64
NONCE_BYTES = 32
PROOF_BYTES = 32
ACCEPTED = b"\x01"
PURPOSE = "peer-hello"
"""Which key of the cluster secrets proves a hello."""

_LAYOUT = struct.Struct(f">4sBBB{(f'B{NAME_BYTES_MAX}s' * 3)}{NONCE_BYTES}s")
_PREFIX = struct.Struct(">4sB")
HELLO_BYTES = _LAYOUT.size
PREFIX_BYTES = _PREFIX.size


class Lane(IntEnum):
    """What a connection is for. Each lane of a pair of nodes has its own."""

    CONSENSUS = 1
    """Agreeing and gossiping: small and urgent."""
    DATA = 2
    """Calls passed on and snapshots: large and patient."""


class Role(IntEnum):
    """Which side of a connection speaks."""

    CLIENT = 1
    SERVER = 2


class Refusal(StrEnum):
    """Why a connection did not become a link. Each has a counter."""

    BUSY = "busy"
    """Too many connections are being greeted."""
    UNREACHABLE = "unreachable"
    """Nobody answered where the peer should be."""
    TIMEOUT = "timeout"
    """The hello took too long."""
    CLOSED = "closed"
    """The other side ended before the hello did; it may have refused us."""
    NOT_TLS = "not_tls"
    """The other side doesn't speak TLS 1.3."""
    MALFORMED = "malformed"
    """The hello isn't one of ours."""
    VERSION = "version"
    """The hello is of another version."""
    UNKNOWN_NODE = "unknown_node"
    """The other side isn't the peer expected here, or none of ours."""
    OWN_ID = "own_id"
    """The other side bears our own id."""
    WRONG_DIRECTION = "wrong_direction"
    """The greater id dialed: only the smaller does."""
    WRONG_PROOF = "wrong_proof"
    """The other side doesn't know the secret, or stands in the middle, or repeats a hello."""
    OTHER_CLUSTER = "other_cluster"
    """The other side knows the secret, but belongs to another cluster."""


class HelloRefused(Exception):
    """The other side can't be taken for a peer."""

    def __init__(self, refusal: Refusal, why: str) -> None:
        super().__init__(why)
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a node says of itself on a new connection."""

    role: Role
    lane: Lane
    node: str
    cluster: str
    """Empty while the cluster is being founded."""
    boot: str
    """Which start of the node this is."""
    nonce: bytes
    """32 bytes, never used before."""


def pack(hello: Hello) -> bytes:
    """Return the `HELLO_BYTES` bytes of a hello."""
    assert len(hello.nonce) == NONCE_BYTES
    node, cluster, boot = (name_bytes(name) for name in (hello.node, hello.cluster, hello.boot))
    return _LAYOUT.pack(
        MAGIC,
        VERSION,
        hello.role,
        hello.lane,
        len(node),
        node,
        len(cluster),
        cluster,
        len(boot),
        boot,
        hello.nonce,
    )


def name_bytes(name: str) -> bytes:
    """Return a name as it crosses the wire.

    Raises:
        ValueError: It is over 64 bytes or holds a NUL.
    """
    data = name.encode()
    if len(data) > NAME_BYTES_MAX or b"\0" in data:
        raise ValueError(f"the name {name!r} is over {NAME_BYTES_MAX} bytes or holds a NUL")
    return data


def check_prefix(data: bytes) -> None:
    """Tell a hello of ours by its first `PREFIX_BYTES` bytes.

    Raises:
        HelloRefused: It is something else, or of another version.
    """
    magic, version = _PREFIX.unpack(data)
    if magic != MAGIC:
        raise HelloRefused(Refusal.MALFORMED, "what came is no hello")
    if version != VERSION:
        raise HelloRefused(
            Refusal.VERSION, f"the hello is of version {version}; this node speaks {VERSION}"
        )


def unpack(data: bytes, role: Role) -> Hello:
    """Return the hello in `HELLO_BYTES` bytes, said by a `role`.

    Raises:
        HelloRefused: The bytes are anything but one packed hello of that role.
    """
    assert len(data) == HELLO_BYTES
    check_prefix(data[:PREFIX_BYTES])
    fields = _LAYOUT.unpack(data)
    _, _, said_role, lane, *names, nonce = fields
    try:
        hello = Hello(
            role=Role(said_role),
            lane=Lane(lane),
            node=_name(names[0], names[1]),
            cluster=_name(names[2], names[3]),
            boot=_name(names[4], names[5]),
            nonce=nonce,
        )
    except ValueError:
        raise HelloRefused(Refusal.MALFORMED, "a field of the hello can't be read") from None
    if hello.role is not role or not hello.node:
        raise HelloRefused(Refusal.MALFORMED, "the hello names no node or the wrong role")
    return hello


def _name(length: int, field: bytes) -> str:
    name = field[:length].decode()
    # One spelling for each name: nothing hides in the filling.
    if length > NAME_BYTES_MAX or "\0" in name or any(field[length:]):
        raise ValueError("not a name and its filling")
    return name


def check_client(hello: Hello, *, me: str, peers: Collection[str]) -> None:
    """Decide whether this client is one we would greet back; it has proven nothing yet.

    Raises:
        HelloRefused: It is no peer of ours, or should have waited for us to dial.
    """
    if hello.node == me:
        raise HelloRefused(Refusal.OWN_ID, f"another node calls itself {me}")
    if hello.node not in peers:
        raise HelloRefused(Refusal.UNKNOWN_NODE, "the node isn't among the configured peers")
    if hello.node > me:
        raise HelloRefused(Refusal.WRONG_DIRECTION, f"{hello.node} dialed {me}, not the reverse")


def check_server(hello: Hello, *, peer: str, lane: Lane) -> None:
    """Decide whether this server, proven to know the secret, is the one we dialed.

    Raises:
        HelloRefused: It is another node, or answers for another lane.
    """
    if hello.node != peer:
        raise HelloRefused(Refusal.UNKNOWN_NODE, f"{hello.node} answered where {peer} should be")
    if hello.lane is not lane:
        raise HelloRefused(Refusal.MALFORMED, "the hello answers for another lane")


def check_clusters(ours: str, hello: Hello) -> None:
    """Decide whether both belong together; a node without a cluster fits anywhere.

    Raises:
        HelloRefused: Both have a cluster, and not the same.
    """
    if ours and hello.cluster and ours != hello.cluster:
        raise HelloRefused(
            Refusal.OTHER_CLUSTER,
            f"{hello.node} belongs to cluster {hello.cluster}, this node to {ours}; "
            "check the peer addresses and the data directories",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What both sides of one connection saw, as far as the proofs bind it."""

    client_hello: bytes
    server_hello: bytes
    certificate: bytes
    """The server's, as DER: what it shows, or what the client was shown."""

    def prove(self, role: Role, key: bytes) -> bytes:
        """Return the proof that whoever speaks as `role` knows `key`."""
        label = f"reachnode peer hello {VERSION}, proof of the {role.name.lower()}".encode()
        # Every part is of fixed size, so that no two exchanges run together to the same bytes.
        parts = (
            hashlib.sha256(label).digest(),
            self.client_hello,
            self.server_hello,
            hashlib.sha256(self.certificate).digest(),
        )
        return hmac.digest(key, b"".join(parts), "sha256")

    def check_proof(self, role: Role, proof: bytes, keys: Collection[bytes], *, node: str) -> None:
        """Verify the proof of the other side under any of our keys.

        Args:
            role: As what the other side speaks.
            proof: What it sent.
            keys: Those accepted.
            node: Who it should be, for the message.

        Raises:
            HelloRefused: None of the keys made this proof of this exchange.
        """
        # No short cut: the time taken tells nothing about which key fitted.
        fits = [hmac.compare_digest(self.prove(role, key), proof) for key in keys]
        if not any(fits):
            raise HelloRefused(
                Refusal.WRONG_PROOF,
                f"{node} doesn't prove that it knows the cluster secret; "
                "give every node the same secret file",
            )
