import os

import pytest

from tests.requirements import REQUIRE_ALL, require

MISSING = "a-program-nobody-has"


def test_what_is_there_is_named() -> None:
    """A program that is installed is answered with its path."""
    assert os.access(require("sh"), os.X_OK)


def test_what_is_missing_skips_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that promises nothing, the test is skipped and says what is missing."""
    monkeypatch.delenv(REQUIRE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match=MISSING):
        require(MISSING)


def test_what_is_missing_fails_where_all_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything is promised, a skip would hide a hole."""
    monkeypatch.setenv(REQUIRE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match=MISSING):
        require(MISSING)


def test_root_is_asked_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Being root is a property of the process, not a program."""
    monkeypatch.delenv(REQUIRE_ALL, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert require("root") == "root"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception):
        require("root")
    with pytest.raises(pytest.skip.Exception):
        require("mount")
