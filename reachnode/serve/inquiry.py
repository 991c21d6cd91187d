"""One request on its way to a handler: what it says, checked as it is asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reachnode.errors import InvalidRequest, UnsupportedMediaType
from reachnode.wire.documents import read_object
from reachnode.wire.http_engines import Request

KEY_FORM = re.compile(r'"([\x20\x21\x23-\x5b\x5d-\x7e]{1,128})"|([\x21\x23-\x5b\x5d-\x7e]{1,128})')
REVISION_FORM = re.compile(r'"([0-9]{1,18})"|([0-9]{1,18})')
JSON_TYPE = re.compile(r"application/(?:[a-z0-9.-]+\+)?json", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A request that a path of ours takes."""

    request: Request
    request_id: str
    """Ours: it stands in the log and in problem details."""
    parts: Mapping[str, str]
    """What the path's placeholders stand for."""
    query: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """Return the JSON object of the body.

        Raises:
            UnsupportedMediaType: The body says it is something else, or is compressed.
            InvalidRequest: It isn't one.
        """
        coding = self.request.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise UnsupportedMediaType(f"{coding!r} is not decoded here; send the body as it is")
        said = self.request.headers.get("content-type", "application/json")
        if not JSON_TYPE.fullmatch(said.partition(";")[0].strip()):
            raise UnsupportedMediaType(f"{said!r} is not read here; send application/json")
        return read_object(self.request.body)

    def whole_number(self, name: str) -> int | None:
        """Return a whole number of the query, from 0 up; None when it isn't there.

        Raises:
            InvalidRequest: It is something else.
        """
        text = self.query.get(name)
        if text is None:
            return None
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise InvalidRequest(f"{name} must be a whole number from 0 up")
        return int(text)

    def idempotency_key(self) -> str | None:
        """Return the key under which a change may be repeated; None when there is none.

        Raises:
            InvalidRequest: It isn't 1 to 128 visible characters, quoted or bare.
        """
        said = self.request.headers.get("idempotency-key")
        if said is None:
            return None
        key = KEY_FORM.fullmatch(said)
        if key is None:
            raise InvalidRequest("Idempotency-Key must be 1 to 128 visible ASCII characters")
        return key[1] or key[2]

    def expected_revision(self) -> int | None:
        """Return the revision that `If-Match` names, None when any will do.

        Raises:
            InvalidRequest: It names none.
        """
        said = self.request.headers.get("if-match", "*")
        if said == "*":
            return None
        revision = REVISION_FORM.fullmatch(said)
        if revision is None:
            raise InvalidRequest('If-Match must be one revision, as in 3 or "3"')
        return int(revision[1] or revision[2])
