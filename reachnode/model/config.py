"""The settings of one node: nouns with their help text, and what makes them contradict.

Reading them from flags, environment and file is `reachnode.wire.configuration`; what the
whole cluster shares is in the replicated settings, not here.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, get_type_hints

from immutables import Map

from reachnode.model.address import Address

NODE_ID_FORM = re.compile(r"[A-Za-z0-9._-]{1,64}")
LISTEN_DEFAULT = Address("127.0.0.1", 7400)
PEER_LISTEN_DEFAULT = Address("127.0.0.1", 7401)
TIME_SCALE_MIN, TIME_SCALE_MAX = 0.1, 100.0
SNAPSHOT_ENTRIES_MIN, SNAPSHOT_ENTRIES_MAX = 10, 1_000_000
DRAIN_SECONDS_MAX = 3600.0


class ConfigError(Exception):
    """A setting is wrong, unknown or contradicts another; starting again won't help.

    Args:
        key: The setting, dotted, as in `node.data_dir`.
        why: What is wrong and what to do, a sentence without the key.
        place: Where it was said: a flag, a variable, or file and line; empty when nowhere.
    """

    def __init__(self, *, key: str, why: str, place: str = "") -> None:
        super().__init__(f"{place + ': ' if place else ''}{key}: {why}")
        self.key = key
        self.why = why
        self.place = place


def is_loopback(address: Address) -> bool:
    """Return whether only this machine can reach it; an unknown name counts as reachable."""
    ip = numeric(address.host)
    return address.host == "localhost" if ip is None else ip.is_loopback


def is_wildcard(address: Address) -> bool:
    """Return whether it stands for every address: good to listen on, not to connect to."""
    ip = numeric(address.host)
    return ip is not None and ip.is_unspecified


def numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that `host` spells, None where it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field of `NodeConfig` is called outside, and what it means."""

    key: str
    """Section and name in the file; the environment variable is made of it."""
    help: str
    flag: str | None = None
    metavar: str | None = None
    unset: str = "unset"
    """How the reference shows a default of None: what happens then."""

    @property
    def variable(self) -> str:
        """Return the environment variable, as in `REACHNODE_NODE__DATA_DIR`."""
        return "REACHNODE_" + self.key.upper().replace(".", "__")


HOST_PORT = "HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """Everything that belongs to one node. Immutable: a reload makes a new one.

    Each field is a key of the file (``node.data_dir``), an environment variable
    (``REACHNODE_NODE__DATA_DIR``) and, where named, a flag (``--data-dir``). Its help text
    is the annotation, so the command line and the reference page cannot disagree with the
    code. Contradictions raise `ConfigError` here, wherever the values came from.
    """

    id: Annotated[
        str, Setting("node.id", "Name of this node, unique in the cluster.", "--node-id", "ID")
    ] = "n1"
    data_dir: Annotated[
        str,
        Setting("node.data_dir", "Directory of everything the node keeps.", "--data-dir", "DIR"),
    ] = "reachnode-data"
    listen: Annotated[
        Address,
        Setting("node.listen", "Where callers and agents connect.", "--listen", HOST_PORT),
    ] = LISTEN_DEFAULT
    peer_listen: Annotated[
        Address | None,
        Setting(
            "node.peer_listen",
            "Where the other nodes connect.",
            "--peer-listen",
            HOST_PORT,
            unset="this node's address in `cluster.peers`; without peers `127.0.0.1:7401`",
        ),
    ] = None
    advertise: Annotated[
        Address | None,
        Setting(
            "node.advertise",
            "The client address that others are told.",
            "--advertise",
            HOST_PORT,
            unset="`node.listen`",
        ),
    ] = None
    peer_advertise: Annotated[
        Address | None,
        Setting(
            "node.peer_advertise",
            "The address at which the other nodes find this one.",
            "--peer-advertise",
            HOST_PORT,
            unset="this node's address in `cluster.peers`, else `node.peer_listen`",
        ),
    ] = None
    drain_seconds: Annotated[
        float, Setting("node.drain_seconds", "How long work in flight may take at shutdown.")
    ] = 10.0
    peers: Annotated[
        Mapping[str, Address],
        Setting(
            "cluster.peers",
            "Every voter's peer address, this node's included; the same text on every node.",
            "--peers",
            "ID=HOST:PORT,…",
            unset="none: a cluster of one",
        ),
    ] = field(default_factory=Map)
    secret_file: Annotated[
        str | None,
        Setting(
            "cluster.secret_file",
            "File with the cluster secret; with two lines the first is used, both are accepted.",
            "--cluster-secret-file",
            "FILE",
            unset="a cluster of one makes its own key",
        ),
    ] = None
    time_scale: Annotated[
        float,
        Setting("cluster.time_scale", "Factor on heartbeat and election times; slow machines: 3."),
    ] = 1.0
    snapshot_entries: Annotated[
        int,
        Setting(
            "cluster.snapshot_entries",
            "Entries in the journal that call for a snapshot; fewer start faster, and write more.",
        ),
    ] = 5_000
    auth: Annotated[
        Literal["off"],
        Setting("security.auth", "Whether callers must prove who they are."),
    ] = "off"
    insecure: Annotated[
        bool,
        Setting("security.insecure", "Whether to listen beyond loopback without authentication."),
    ] = False
    log_format: Annotated[
        Literal["text", "json"],
        Setting(
            "observe.log_format",
            "How log lines and the ready line look.",
            "--log-format",
            "text|json",
        ),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Setting(
            "observe.log_level",
            "The least important line that is logged: debug, info, warning or error.",
            "--log-level",
            "LEVEL",
        ),
    ] = "info"

    def __post_init__(self) -> None:
        if not NODE_ID_FORM.fullmatch(self.id):
            raise ConfigError(key="node.id", why=f"{self.id!r} must match {NODE_ID_FORM.pattern}")
        if not 0 <= self.drain_seconds <= DRAIN_SECONDS_MAX:
            raise ConfigError(
                key="node.drain_seconds", why=f"must be between 0 and {DRAIN_SECONDS_MAX:g}"
            )
        if not TIME_SCALE_MIN <= self.time_scale <= TIME_SCALE_MAX:
            raise ConfigError(
                key="cluster.time_scale",
                why=f"must be between {TIME_SCALE_MIN:g} and {TIME_SCALE_MAX:g}",
            )
        if not SNAPSHOT_ENTRIES_MIN <= self.snapshot_entries <= SNAPSHOT_ENTRIES_MAX:
            raise ConfigError(
                key="cluster.snapshot_entries",
                why=f"must be between {SNAPSHOT_ENTRIES_MIN} and {SNAPSHOT_ENTRIES_MAX}",
            )
        refuse_bad_peers(self)
        refuse_bad_listening(self)
        refuse_bad_advertising(self)

    @property
    def peer_bind(self) -> Address:
        """Return where the node listens for the other nodes."""
        return self.peer_listen or self.peers.get(self.id) or PEER_LISTEN_DEFAULT

    @property
    def voters(self) -> Mapping[str, Address]:
        """Return every voter's peer address; without `cluster.peers` this node alone."""
        return self.peers or Map({self.id: self.peer_advertise or self.peer_bind})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is allowed but unwise, a sentence each."""
        found = []
        if self.peers and len(self.peers) % 2 == 0:
            found.append(
                f"cluster.peers: {len(self.peers)} voters survive no more losses than "
                f"{len(self.peers) - 1}; use 1, 3 or 5"
            )
        own = self.peers.get(self.id)
        if own and is_loopback(self.peer_bind) and not is_loopback(own):
            found.append(
                f"node.peer_listen: {self.peer_bind} is loopback, but the others look for "
                f"this node at {own}"
            )
        if self.insecure:
            found.append("security.insecure: anyone who reaches node.listen may change everything")
        return tuple(found)


def settings() -> dict[str, Setting]:
    """Return what each field of `NodeConfig` is called outside, in their order."""
    hints = get_type_hints(NodeConfig, include_extras=True)
    return {one.name: hints[one.name].__metadata__[0] for one in fields(NodeConfig)}


def refuse_bad_peers(config: NodeConfig) -> None:
    """Raise where the list of voters can't be that of a cluster with this node in it."""
    key = "cluster.peers"
    taken: dict[Address, str] = {}
    for peer, address in sorted(config.peers.items()):
        if not NODE_ID_FORM.fullmatch(peer):
            raise ConfigError(key=key, why=f"{peer!r} must match {NODE_ID_FORM.pattern}")
        if is_wildcard(address) or address.port == 0:
            raise ConfigError(key=key, why=f"{address} of {peer} is no address to connect to")
        if address in taken:
            raise ConfigError(key=key, why=f"{taken[address]} and {peer} both have {address}")
        taken[address] = peer
    if config.peers and config.id not in config.peers:
        known = ", ".join(sorted(config.peers))
        raise ConfigError(key="node.id", why=f"{config.id} is not among cluster.peers ({known})")
    if len(config.peers) > 1 and config.secret_file is None:
        raise ConfigError(
            key="cluster.secret_file",
            why="more than one peer needs a cluster secret; "
            "make one with `reachnode cluster secret` and copy it to every node",
        )


def refuse_bad_listening(config: NodeConfig) -> None:
    """Raise where the two ports collide, or strangers could change everything."""
    if config.listen == config.peer_bind and config.listen.port:
        raise ConfigError(
            key="node.peer_listen", why=f"{config.peer_bind} is also node.listen; take another port"
        )
    if not is_loopback(config.listen) and not config.insecure:
        raise ConfigError(
            key="node.listen",
            why=f"{config.listen} is beyond loopback and callers aren't authenticated; "
            "listen on 127.0.0.1, or set security.insecure: true on a network you trust",
        )


def refuse_bad_advertising(config: NodeConfig) -> None:
    """Raise where others would be told an address they can't use."""
    told = {
        "node.advertise": (config.advertise, config.listen),
        "node.peer_advertise": (config.peer_advertise, config.peer_bind),
    }
    for key, (address, listening) in told.items():
        if address is None:
            continue
        if is_wildcard(address) or address.port == 0:
            raise ConfigError(key=key, why=f"{address} is no address to connect to")
        if is_loopback(address) and not is_loopback(listening):
            raise ConfigError(key=key, why=f"{address} means another machine to the others")
    own = config.peers.get(config.id)
    if own and config.peer_advertise not in (None, own):
        raise ConfigError(
            key="node.peer_advertise",
            why=f"{config.peer_advertise} differs from {own}, which cluster.peers says of "
            f"{config.id}",
        )
