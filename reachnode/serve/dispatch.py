"""One request to one answer: find the handler, catch what goes wrong, say who answers."""

import difflib
import logging
from collections.abc import Collection, Mapping
from email.utils import formatdate
from urllib.parse import quote

from reachnode.errors import Internal, InvalidRequest, ReachError
from reachnode.serve.answers import Answer, problem
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.paths import find
from reachnode.wire.http_engines import Request
from reachnode.wire.http_targets import read_target

LOG = logging.getLogger(__name__)


async def answer(front: Front, request: Request) -> Answer:
    """Return the answer to a request. Only cancellation gets out of here."""
    request_id = front.sources.new_id()
    try:
        return await handled(front, request, request_id)
    except ReachError as error:
        if isinstance(error, Internal):
            LOG.error("request %s: %s", request_id, error.why)
        return problem(error, request_id=request_id)
    except Exception:
        LOG.exception("request %s: %s %s", request_id, request.method, request.target[:200])
        fault = Internal(f"a fault of ours, logged under {request_id}")
        return problem(fault, request_id=request_id)


async def handled(front: Front, request: Request, request_id: str) -> Answer:
    """Return what the handler of a path says.

    Raises:
        ReachError: It refuses, or there is none.
    """
    target = read_target(request.target)
    route, parts = find(request.method, target.path)
    operation = route.operation
    if operation.query is not None:
        refuse_unknown_query(target.query, operation.query)
    inquiry = Inquiry(request=request, request_id=request_id, parts=parts, query=target.query)
    return await operation.handler(front, inquiry)


def refuse_unknown_query(query: Mapping[str, str], known: Collection[str]) -> None:
    """Raise where a query asks for what a path doesn't give: a typo must not weaken a read.

    Raises:
        InvalidRequest: It does; the closest known name is suggested.
    """
    for name in query:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidRequest(f"{name} is unknown in the query{hint}")


def headers_of(front: Front, given: Answer) -> dict[str, str]:
    """Return the headers of an answer, those of every answer included."""
    return {
        "Date": formatdate(front.sources.wall_ms() / 1000, usegmt=True),
        "Content-Type": given.content_type,
        "X-Reach-Node": quote(front.about.node_id, safe=""),
        "X-Reach-Index": str(front.replica.applied_index),
        "X-Reach-Stale-Ms": str(front.stale_ms()),
        **given.headers,
    }
