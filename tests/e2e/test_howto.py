"""The commands of the guide to agents, run as they are printed."""

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e.processes import SECONDS_MAX, alone, running
from tests.house import pages, tree
from tests.requirements import require

PAGE = "docs/howto/register-and-find-an-agent.md"
NODE, SERVER = "127.0.0.1:7400", "127.0.0.1:8000"
OUT_OF_TIME = 28
"""How curl ends when it is told to end."""


def commands() -> list[str]:
    """Return the commands of the page that start nothing, in order."""
    lines = pages.console_lines(tree.text(PAGE))
    started = [line for line in lines if line.endswith("&")]
    assert [line.split()[0] for line in started] == ["reachnode", "python3"]
    return [line for line in lines if not line.endswith("&")]


def test_the_guide_to_agents_works(tmp_path: Path) -> None:
    """Each command does what the page says, one after the other."""
    require("curl")
    node = alone(tmp_path)
    told = {}
    with running(node), socket.create_server(("127.0.0.1", 0)) as server:
        places = {NODE: "{}:{}".format(*node.place), SERVER: f"127.0.0.1:{server.getsockname()[1]}"}
        for command in commands():
            line = command
            for printed, real in places.items():
                line = line.replace(printed, real)
            arguments = shlex.split(line)
            is_endless = "/watch" in command
            if arguments[0] == "reachnode":
                arguments = [sys.executable, "-m", *arguments]
            elif is_endless:
                arguments += ["--max-time", "1"]
            done = subprocess.run(
                arguments,
                check=False,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                env={**os.environ, "REACHNODE_NODES": node.url},
            )
            assert done.returncode == (OUT_OF_TIME if is_endless else 0), (command, done)
            told[command] = done.stdout
    by_word = {word: out for command, out in told.items() for word in command.split("/")}
    assert '"incarnation":1' in by_word[next(word for word in by_word if "register " in word)]
    assert "event: snapshot" in by_word[next(word for word in by_word if "watch?" in word)]
    assert "1 candidates" in told["reachnode discover demo.echo --explain"]
    assert "healthy" in told["reachnode agents list"]
