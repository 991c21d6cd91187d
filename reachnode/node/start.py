"""From a configuration to a node of this process, and from its end to an exit status."""

import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import trio

from reachnode.model.address import Address
from reachnode.model.config import ConfigError, NodeConfig
from reachnode.node.node import Node, StartError, Told
from reachnode.node.notify import READY, STOPPING, notify
from reachnode.node.ports import RunningReplica
from reachnode.peers.link import LinkSettings
from reachnode.peers.raft.failstop import CAUSE_BY_WORD, FailStop
from reachnode.peers.raft.replica import Replica, Surroundings
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.secrets import ClusterSecrets, SecretError
from reachnode.serve.listener import CONNECTIONS_MAX
from reachnode.world.files import DirectoryInUse, Files, SystemFiles
from reachnode.world.network import Network, SystemNetwork
from reachnode.world.sources import Sources, SystemSources

LOG = logging.getLogger(__name__)
EXIT_OK = 0
EXIT_FAILED = 1
SWITCH_SECONDS = 0.0005
"""How long the loop may keep the interpreter while the disk worker waits for it. By default
5 ms, which a change waits after its sync whenever the loop is busy."""
FILES_RESERVED = 48
"""Open files that clients don't get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a replica is made of."""

    config: NodeConfig
    secrets: ClusterSecrets
    files: Files
    network: Network
    sources: Sources


MakeReplica = Callable[[Parts], RunningReplica]


def make_replica(parts: Parts) -> Replica:
    """Return this node's part in the cluster, on the consensus engine."""
    config = parts.config
    slower = max(1.0, config.time_scale)
    default = LinkSettings()
    link = replace(
        default,
        handshake_seconds=default.handshake_seconds * slower,
        idle_seconds=default.idle_seconds * slower,
    )
    return Replica(
        Surroundings(
            me=config.id,
            members=config.voters,
            listen=config.peer_bind,
            files=parts.files,
            network=parts.network,
            sources=parts.sources,
            secrets=parts.secrets,
            raft=RaftSettings().snapshot_every(config.snapshot_entries).scaled(config.time_scale),
            link=link,
        )
    )


def run_process(config: NodeConfig, make_replica: MakeReplica, out: TextIO | None = None) -> int:
    """Run a node until it is told to stop; return the exit status.

    Logs must be configured. What ends the node before its time is one line on standard error.

    Args:
        config: The node's.
        make_replica: Makes its part in the cluster.
        out: Where the ready line goes; standard output when None.
    """
    allow_many_files()
    sys.setswitchinterval(SWITCH_SECONDS)
    for warning in config.warnings:
        LOG.warning("%s", warning)
    try:
        secrets = read_secrets(config)
        files = open_data_dir(config)
    except (ConfigError, StartError) as error:
        return failed(str(error))
    try:
        parts = Parts(
            config=config,
            secrets=secrets,
            files=files,
            network=SystemNetwork(),
            sources=SystemSources(),
        )
        trio.run(run_node, parts, make_replica, out or sys.stdout)
    except BaseExceptionGroup as group:
        return ended(group)
    except (FailStop, StartError, OSError) as error:
        return ended(error)
    finally:
        files.close()
    return EXIT_OK


async def run_node(parts: Parts, make_replica: MakeReplica, out: TextIO) -> None:
    """Run a node on this process's signals."""
    config = parts.config

    def say_ready(listen: Address, peer_listen: Address) -> None:
        out.write(ready_line(config, listen, peer_listen) + "\n")
        out.flush()
        notify(READY, os.environ)

    def hurry() -> None:
        os._exit(EXIT_FAILED)

    told = Told(ready=say_ready, stopping=lambda: notify(STOPPING, os.environ), hurry=hurry)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        node = Node(
            config=config,
            replica=make_replica(parts),
            network=parts.network,
            sources=parts.sources,
            told=told,
            connections_max=clients_max(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        )
        await node.run(signals)


def ready_line(config: NodeConfig, listen: Address, peer_listen: Address) -> str:
    """Return the line that says where a node listens."""
    if config.log_format == "json":
        return json.dumps(
            {
                "event": "ready",
                "node_id": config.id,
                "listen": f"http://{listen}",
                "peer_listen": str(peer_listen),
            }
        )
    return f"ready: {config.id} listens on http://{listen}, for peers on {peer_listen}"


def read_secrets(config: NodeConfig) -> ClusterSecrets:
    """Return the cluster's secrets; a cluster of one has one that nobody else needs.

    Raises:
        ConfigError: The file can't be used.
    """
    if config.secret_file is None:
        return ClusterSecrets.random()
    try:
        return ClusterSecrets.read(Path(config.secret_file))
    except SecretError as error:
        raise ConfigError(key="cluster.secret_file", why=str(error)) from error


def open_data_dir(config: NodeConfig) -> SystemFiles:
    """Return the data directory, locked for this process.

    Raises:
        StartError: It can't be made, or another node has it.
    """
    try:
        files = SystemFiles(Path(config.data_dir))
    except OSError as error:
        raise StartError(
            f"node.data_dir: {config.data_dir} can't be used ({error.strerror}); "
            "give the node a directory it may write to"
        ) from error
    try:
        files.lock()
    except DirectoryInUse as error:
        files.close()
        raise StartError(
            f"node.data_dir: {config.data_dir} is in use; stop the node that has it, "
            "or give this one a directory of its own"
        ) from error
    return files


def allow_many_files() -> None:
    """Raise the soft limit on open files to the hard one: connections are files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def clients_max(files_max: int) -> int:
    """Return how many clients may be connected at once where so many files may be open.

    Some are kept for the disk and the peers: a node that can't write its journal is no help
    to anybody.
    """
    if files_max == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(max(files_max - FILES_RESERVED, 1), CONNECTIONS_MAX)


def ended(error: BaseException) -> int:
    """Say why a node ended before its time; return the exit status."""
    causes = list(leaves(error))
    for cause in causes:
        if isinstance(cause, FailStop):
            return failed(f"{cause} ({cause.remedy})", status=cause.status)
    for cause in causes:
        if isinstance(cause, StartError | OSError):
            return failed(str(cause))
    LOG.critical("a fault of ours ended the node", exc_info=error)
    fault = CAUSE_BY_WORD["internal_fault"]
    said = f"{fault.word}: a fault of ours ended the node; the log has it ({fault.remedy})"
    return failed(said, status=fault.status)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield what is inside a group of errors, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inside in error.exceptions:
            yield from leaves(inside)
    else:
        yield error


def failed(why: str, *, status: int = EXIT_FAILED) -> int:
    """Print why on standard error; return the exit status."""
    sys.stderr.write(f"reachnode: {why}\n")
    return status
