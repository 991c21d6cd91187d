"""Options that commands share: a node's settings, read off `NodeConfig`, and which nodes to ask."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from reachnode.cli.api import Api
from reachnode.model.config import ConfigError, NodeConfig, settings
from reachnode.wire.configuration import read_config

DEFAULT_NODE = "http://127.0.0.1:7400"
FILE_BYTES_MAX = 1 << 20


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    """Give a parser every setting that has a flag."""
    parser.add_argument("--config", metavar="FILE", help="YAML file with settings.")
    for setting in settings().values():
        if setting.flag is not None:
            parser.add_argument(
                setting.flag, dest=setting.key, metavar=setting.metavar, help=setting.help
            )
    parser.add_argument("--observer", action="store_true", help=argparse.SUPPRESS)


def config_of(args: argparse.Namespace, environment: Mapping[str, str]) -> NodeConfig:
    """Return the configuration that flags, environment and file ask for.

    Raises:
        ConfigError: They ask for something impossible; the place is named.
    """
    keys = (setting.key for setting in settings().values() if setting.flag is not None)
    flags = {key: said for key in keys if (said := getattr(args, key)) is not None}
    if args.observer:
        flags["node.observer"] = "true"
    return read_config(
        flags=flags,
        environment=environment,
        file_text=None if args.config is None else file_text(args.config),
        file_name=args.config or "",
    )


def file_text(name: str) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigError: It can't be read.
    """
    try:
        with Path(name).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise ConfigError(key="file", why=f"is over {FILE_BYTES_MAX} bytes", place=name)
        return data.decode()
    except OSError as error:
        raise ConfigError(key="file", why=f"can't be read: {error.strerror}", place=name) from None
    except UnicodeDecodeError as error:
        why = f"is no UTF-8 at byte {error.start}"
        raise ConfigError(key="file", why=why, place=name) from None


def add_node_flags(parser: argparse.ArgumentParser, *, is_below: bool = False) -> None:
    """Give a parser what says which nodes to ask, and how to answer.

    Args:
        parser: Of a command.
        is_below: Whether the command above has these options too; what was said there holds
            unless it is said here again.
    """
    unsaid = argparse.SUPPRESS if is_below else None
    parser.add_argument(
        "--node",
        action="append",
        metavar="URL",
        default=unsaid,
        help="Node to ask, repeatable; the next is asked when one can't answer. "
        f"Default: REACHNODE_NODES, comma separated, else {DEFAULT_NODE}.",
    )
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        default=unsaid,
        help="Credential to send. Default: REACHNODE_TOKEN.",
    )
    parser.add_argument("--json", action="store_true", default=unsaid, help="Answer in JSON.")


def api_of(args: argparse.Namespace) -> Api:
    """Return the nodes that options and environment name.

    Raises:
        WrongUrl: One can't be used.
    """
    listed = [one.strip() for one in os.environ.get("REACHNODE_NODES", "").split(",")]
    nodes = args.node or [one for one in listed if one] or [DEFAULT_NODE]
    return Api(nodes, args.token or os.environ.get("REACHNODE_TOKEN"))
