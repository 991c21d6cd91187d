"""The documentation keeps its form, and nothing in the project names a machine."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.house import pages, tree

FRAGMENT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(breaking|added|changed|fixed)\.md")
DECISION = re.compile(r"(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SECOND_SENTENCE = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?] +[A-Z]")

MACHINE = re.compile(
    r"(?<![\w.])/(?:work|root|home/\w+)/"
    r"|\bpypi\.org|pythonhosted\.org|\bindex-url\b"
    r"|\b(?:docker|ghcr|quay)\.io/"
    r"|\bregistry\.(?:[a-z]+\.)+(?:com|io|org)\b"
)
"""A path of somebody's machine, or the host of a registry of packages or images."""


def broken_links(path: str) -> Iterator[str]:
    """Yield the links of a page that lead to no file."""
    for target in LINK.findall(pages.prose(tree.text(path))):
        if "://" not in target and not (tree.ROOT / path).parent.joinpath(target).exists():
            yield f"{path}: {target}"


def crowded_lines(path: str) -> Iterator[str]:
    """Yield the lines of a page that hold more than one sentence; lists and tables may."""
    for number, line in enumerate(pages.prose(tree.text(path)).splitlines(), start=1):
        is_free = line.lstrip().startswith(("|", "-", "*", "#", ">")) or line[:1].isdigit()
        if not is_free and SECOND_SENTENCE.search(re.sub(r"`[^`]*`", "", line)):
            yield f"{path} {number}: {line}"


def test_links_lead_somewhere() -> None:
    """A link inside the documentation points to a file that exists."""
    assert [one for path in pages.markdown_files() for one in broken_links(path)] == []


def test_a_line_holds_one_sentence() -> None:
    """One sentence on a line of prose, so that a change shows as what changed."""
    assert [one for path in pages.markdown_files() for one in crowded_lines(path)] == []


def test_fragments_of_the_changelog_are_named_right() -> None:
    """A fragment whose name towncrier can't read would be left out of the changelog."""
    beside = {"README.md", "template.jinja"}
    names = {path.name for path in (tree.ROOT / "docs/changes").iterdir()} - beside
    assert [name for name in names if not FRAGMENT.fullmatch(name)] == []
    assert [name for name in names if not tree.text(f"docs/changes/{name}").strip()] == []


def test_the_changelog_has_the_kinds_of_the_rule() -> None:
    """The four kinds are folded, and no others."""
    towncrier: dict[str, Any] = tree.settings()["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in towncrier["type"]}
    assert kinds == {"breaking", "added", "changed", "fixed"}
    assert towncrier["start_string"] in tree.text(towncrier["filename"])


def test_decisions_are_numbered_without_gaps() -> None:
    """Decisions are counted from 1, each number is used once, and the title repeats it."""
    names = sorted(path.name for path in (tree.ROOT / "docs/decisions").iterdir())
    numbers = [int(match[1]) for name in names if (match := DECISION.fullmatch(name))]
    assert numbers == list(range(1, len(names) + 1)), names
    titles = [tree.text(f"docs/decisions/{name}").partition(".")[0] for name in names]
    assert titles == [f"# {number}" for number in numbers]


def test_nothing_names_a_machine_or_a_registry() -> None:
    """The project can be built anywhere: no path of one machine, no host packages come from."""
    own = PurePosixPath(__file__).name
    named = [
        f"{path}: {match.group()}"
        for path in tree.every_file()
        if not path.endswith(own)
        for match in MACHINE.finditer((tree.ROOT / path).read_text("utf-8", errors="replace"))
    ]
    assert named == []


@pytest.mark.parametrize("line", ["cd /work/main", "see /root/.cache", "https://pypi.org/x"])
def test_a_machine_is_seen(line: str) -> None:
    """The rule sees what it forbids."""
    assert MACHINE.search(line)


def test_a_second_sentence_is_seen() -> None:
    """The rule tells one sentence from two."""
    assert SECOND_SENTENCE.search("One thing. Another thing.")
    assert not SECOND_SENTENCE.search("One thing, e.g. Another, in 3.11 as well.")
