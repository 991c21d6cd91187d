"""The cluster's secret, and the keys derived from it.

Nothing uses the secret itself: each purpose has a key of its own, so that a key that leaks
or is misused tells nothing of the others. A file may hold two secrets while nodes are moved
from one to the other: the first is used, both are accepted.
"""

import secrets
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRET_BYTES_MIN = 32
SECRETS_MAX = 2
FILE_BYTES_MAX = 4096
KEY_BYTES = 32

REMEDY = "make one with 'reachnode cluster secret' and give every node the same file"


class SecretError(ValueError):
    """The secret file can't be used. The message names it and says what to do."""


class ClusterSecrets:
    """One or two secrets of the cluster. They are never printed, nor part of a `repr`.

    Args:
        secrets: The one in use, then perhaps another that is accepted as well.

    Raises:
        SecretError: There are none or too many, or one is under 32 bytes.
    """

    __slots__ = ("_keys", "_secrets")

    def __init__(self, *secrets: bytes) -> None:
        if not secrets:
            raise SecretError(f"there is no cluster secret; {REMEDY}")
        if len(secrets) > SECRETS_MAX:
            raise SecretError(
                f"there are {len(secrets)} cluster secrets; keep the one in use on the first "
                "line and at most one more that is accepted as well"
            )
        for number, secret in enumerate(secrets, start=1):
            if len(secret) < SECRET_BYTES_MIN:
                raise SecretError(
                    f"cluster secret {number} has {len(secret)} bytes, "
                    f"fewer than {SECRET_BYTES_MIN}; {REMEDY}"
                )
        self._secrets = secrets
        self._keys: dict[str, tuple[bytes, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the secrets in a file of one or two lines; blank lines and edges don't count.

        Raises:
            SecretError: The file can't be read or its content can't be used.
        """
        try:
            with path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            why = error.strerror or str(error)
            raise SecretError(f"the secret file {path} can't be read ({why}); {REMEDY}") from error
        if len(content) > FILE_BYTES_MAX:
            raise SecretError(f"the secret file {path} is over {FILE_BYTES_MAX} bytes; {REMEDY}")
        lines = [line.strip() for line in content.splitlines()]
        try:
            return cls(*(line for line in lines if line))
        except SecretError as error:
            raise SecretError(f"in the secret file {path}, {error}") from None

    @classmethod
    def random(cls) -> Self:
        """Return a secret nobody else knows: enough for a cluster of one node."""
        return cls(new_secret().encode())

    def key(self, purpose: str) -> bytes:
        """Return the 32-byte key to use for a purpose: HKDF-SHA256 of the first secret."""
        return self.keys(purpose)[0]

    def keys(self, purpose: str) -> tuple[bytes, ...]:
        """Return the keys to accept for a purpose, the one in use first."""
        if purpose not in self._keys:
            self._keys[purpose] = tuple(_derive(secret, purpose) for secret in self._secrets)
        return self._keys[purpose]


def new_secret() -> str:
    """Return the text of a new cluster secret: 32 random bytes in URL-safe base64."""
    return secrets.token_urlsafe(32)


def _derive(secret: bytes, purpose: str) -> bytes:
    # The purpose is the "info" of RFC 5869; the prefix keeps other programs' keys apart.
    info = b"reachnode/" + purpose.encode()
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)
