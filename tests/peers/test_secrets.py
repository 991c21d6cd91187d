"""Reading the cluster's secret and deriving keys from it."""

import hmac
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.secrets import ClusterSecrets, SecretError, new_secret

ONE = b"1" * 32
TWO = b"2" * 40


def test_a_key_has_one_purpose() -> None:
    """Each purpose has a key of its own, the same on every node that has the secret."""
    secrets = ClusterSecrets(ONE)
    assert secrets.key("a") == ClusterSecrets(ONE).key("a")
    assert len({secrets.key("a"), secrets.key("b"), ClusterSecrets(TWO).key("a"), ONE}) == 4
    assert len(secrets.key("a")) == 32


def test_a_key_is_rfc_5869_over_the_named_purpose() -> None:
    """The derivation never changes by accident: nodes of other versions must agree."""
    extracted = hmac.digest(bytes(32), ONE, "sha256")
    expanded = hmac.digest(extracted, b"reachnode/peer-hello" + b"\x01", "sha256")
    assert ClusterSecrets(ONE).key("peer-hello") == expanded


def test_the_first_is_used_and_both_are_accepted(tmp_path: Path) -> None:
    """Two lines of a file are two secrets, in that order."""
    path = tmp_path / "secret"
    path.write_bytes(b"\n  " + ONE + b" \r\n\n" + TWO)
    read = ClusterSecrets.read(path)
    assert read.keys("a") == (ClusterSecrets(ONE).key("a"), ClusterSecrets(TWO).key("a"))
    assert read.key("a") == read.keys("a")[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "there is no cluster secret"),
        (b" \n\n", "there is no cluster secret"),
        (b"short", "cluster secret 1 has 5 bytes, fewer than 32"),
        (ONE + b"\n" + b"2" * 31, "cluster secret 2 has 31 bytes"),
        (b"\n".join([ONE, TWO, ONE]), "there are 3 cluster secrets"),
        (b"x" * 4097, "over 4096 bytes"),
    ],
)
def test_an_unusable_file_says_what_to_do(tmp_path: Path, content: bytes, why: str) -> None:
    """The error names the file, the fault and the remedy, and not the secret."""
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(SecretError, match=why) as raised:
        ClusterSecrets.read(path)
    assert str(path) in str(raised.value)
    assert "reachnode cluster secret" in str(raised.value) or "first line" in str(raised.value)
    assert ONE.decode() not in str(raised.value)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    """A file that isn't there is a clear error too."""
    with pytest.raises(SecretError, match=r"No such file.*reachnode cluster secret"):
        ClusterSecrets.read(tmp_path / "none")


def test_a_new_secret_is_good_and_never_the_same(tmp_path: Path) -> None:
    """What the command prints can be put into a file as it is."""
    path = tmp_path / "secret"
    path.write_text(new_secret() + "\n")
    assert ClusterSecrets.read(path).key("a") != ClusterSecrets.random().key("a")


def test_secrets_do_not_show() -> None:
    """Printing the object in a log or a traceback gives nothing away."""
    assert ONE.decode() not in repr(ClusterSecrets(ONE))


@given(st.binary(max_size=200))
def test_any_content_is_taken_or_refused(content: bytes) -> None:
    """No secret is accepted that is shorter than the least."""
    try:
        ClusterSecrets(content)
    except SecretError:
        assert len(content) < 32
    else:
        assert len(content) >= 32
