"""`reachnode version`: what is installed."""

import argparse
import platform
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path

import msgspec

import reachnode
from reachnode.cli.output import EXIT_OK, say, say_json
from reachnode.cli.parsers import Commands, add_command

LIBRARIES = (
    "trio",
    "h11",
    "httptools",
    "pysyncobj",
    "msgpack",
    "msgspec",
    "immutables",
    "cryptography",
)
HOME = Path(reachnode.__file__).parents[1]
"""The checkout, where the program runs from one."""


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(commands, "version", "Print the versions of reachnode and its parts.", run)
    parser.add_argument("--json", action="store_true", help="Answer in JSON.")


def run(args: argparse.Namespace) -> int:
    """Print the versions; return the exit status."""
    # Late: no other command of this process speaks HTTP as a node does.
    from reachnode.wire.http import ENGINE_NAME

    libraries = {name: version_of(name) for name in LIBRARIES}
    content = {
        "version": reachnode.__version__,
        "commit": commit_of_checkout(HOME) or commit_of_install(distribution("reachnode")),
        "python": platform.python_version(),
        "http_engine": ENGINE_NAME,
    }
    if args.json:
        say_json({**content, "libraries": libraries})
        return EXIT_OK
    say("reachnode", content["version"])
    if content["commit"]:
        say("commit", content["commit"])
    say("python", content["python"])
    say("http engine", content["http_engine"])
    for name, number in libraries.items():
        say(name, number or "not installed")
    return EXIT_OK


def version_of(name: str) -> str | None:
    """Return the version of a library, None where it isn't installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit_of_checkout(home: Path) -> str | None:
    """Return the commit that a git checkout is at, None where it is none or can't be read."""
    git = home / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        if (git / ref).exists():
            return (git / ref).read_text(encoding="ascii").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), None)


def commit_of_install(installed: Distribution) -> str | None:
    """Return the commit that pip installed from, None where it was no repository.

    Source:
        "Recording the Direct URL Origin of installed distributions", PEP 610.
    """
    try:
        origin = msgspec.json.decode(installed.read_text("direct_url.json") or "{}", type=Origin)
    except msgspec.MsgspecError:
        return None
    return origin.vcs_info.commit_id if origin.vcs_info else None


class Commit(msgspec.Struct, frozen=True):
    """What pip installed from a repository."""

    commit_id: str


class Origin(msgspec.Struct, frozen=True):
    """Where pip installed from; a repository alone is of interest."""

    vcs_info: Commit | None = None
