"""The pages made of the code."""

from pathlib import Path

import pytest

from reachnode.cli.reference import pages, write_pages

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", list(pages()))
def test_the_reference_pages_are_fresh(name: str) -> None:
    """Commands, settings and exit statuses say what the code says.

    To renew them: `python -c "from reachnode.cli.reference import write_pages;
    write_pages('docs/reference')"`.
    """
    assert (REFERENCE / name).read_text(encoding="utf-8") == pages()[name]


def test_pages_are_written(tmp_path: Path) -> None:
    """Renewing writes every page."""
    write_pages(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == set(pages())


def test_every_default_is_told() -> None:
    """The page of settings has what holds when nothing is said."""
    page = pages()["settings.md"]
    assert "| `node.listen` | `--listen` | `REACHNODE_NODE__LISTEN` | `127.0.0.1:7400` |" in page
    assert "| `security.insecure` |  | `REACHNODE_SECURITY__INSECURE` | `false` |" in page
    assert "| `cluster.time_scale` |  | `REACHNODE_CLUSTER__TIME_SCALE` | `1` |" in page


def test_every_path_is_listed() -> None:
    """With what it does and how it may refuse."""
    page = pages()["http-api.md"]
    row = next(line for line in page.splitlines() if "`GET /api/v1/watch`" in line)
    assert "Answer with changes of instances as they come." in row
    assert "`from_index`" in row
    assert "`index_expired`" in row
