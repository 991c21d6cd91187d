"""Every error a client may see: raise a leaf, catch a branch.

One code has one meaning on every surface: the frame, the problem document, JSON-RPC and the
OpenAI paths all read `code`, `status` and `can_retry` off the class. The first line of a
leaf's docstring says when it is raised; `docs/reference/errors.md` is made of it. The last
two errors have no code, because no client sees them: the node stops.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class ReachError(Exception):
    """Something was refused or failed, and the client is told so.

    Args:
        why: What happened and what to do, a sentence; by default the leaf's meaning.
        details: What a program can use, such as the place of the fault or the candidates.
        retry_after_ms: When to come back, in milliseconds from now; None says nothing.
    """

    code: ClassVar[str] = ""
    """The word on the wire; empty for a branch, which is never raised itself."""
    status: ClassVar[int] = 500
    """The HTTP status that carries it."""
    can_retry: ClassVar[bool] = False
    """Whether repeating the very same request later may help and is safe."""

    def __init_subclass__(
        cls, *, code: str = "", status: int | None = None, can_retry: bool = False
    ) -> None:
        cls.code = code
        cls.can_retry = can_retry
        if status is not None:
            cls.status = status

    def __init__(
        self,
        why: str = "",
        *,
        details: Mapping[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        self.why = why or self.meaning()
        self.details: Mapping[str, Any] = details or {}
        self.retry_after_ms = retry_after_ms
        super().__init__(self.why)

    @classmethod
    def meaning(cls) -> str:
        """Return when this error is raised, one sentence."""
        return (cls.__doc__ or "").partition("\n")[0]


class CallerError(ReachError, status=400):
    """The request is at fault."""


class InvalidRequest(CallerError, code="invalid_request"):
    """The request is unreadable, has a wrong type or an unknown field."""


class SchemaMismatch(CallerError, code="schema_mismatch", status=422):
    """The payload doesn't fit the capability's input schema."""


class PayloadTooLarge(CallerError, code="payload_too_large", status=413):
    """The payload is larger than allowed."""


class NoMatchingAgent(CallerError, code="no_matching_agent", status=503):
    """The hint, the tags or the version exclude every instance."""


class ConfirmationRequired(CallerError, code="confirmation_required", status=409):
    """The request was matched by meaning, below the threshold: repeat it with `confirm`."""


class IdempotencyMismatch(CallerError, code="idempotency_mismatch", status=422):
    """The idempotency key was used before with another payload."""


class RequestExpired(CallerError, code="request_expired", status=410):
    """The change is too old to tell whether it was applied before: look, then ask anew."""


class DepthExceeded(CallerError, code="depth_exceeded", status=508):
    """Calls are nested deeper than allowed."""


class LoopDetected(CallerError, code="loop_detected", status=508):
    """The call would come back to where it came from; `details` has the ancestry."""


class AccessError(CallerError):
    """The caller may not do this."""


class Unauthenticated(AccessError, code="unauthenticated", status=401):
    """No valid credential came with the request."""


class Forbidden(AccessError, code="forbidden", status=403):
    """The credential is valid but isn't granted this."""


class TrustTooLow(AccessError, code="trust_too_low", status=403):
    """The capability demands a higher trust level than the credential carries."""


class MissingError(CallerError, status=404):
    """What the request names doesn't exist."""


class UnknownCapability(MissingError, code="unknown_capability"):
    """Nobody ever declared this capability."""


class UnknownAgent(MissingError, code="unknown_agent"):
    """No instance is registered under this `agent_id`: register again."""


class UnknownTicket(MissingError, code="unknown_ticket"):
    """There is no ticket of this id."""


class UnknownSchedule(MissingError, code="unknown_schedule"):
    """There is no schedule of this id."""


class UnknownCaller(MissingError, code="unknown_caller"):
    """There is no caller of this id."""


class UnknownTool(MissingError, code="unknown_tool"):
    """There is no tool of this name."""


class UnknownReach(MissingError, code="unknown_reach"):
    """There is no reach of this name."""


class UnknownPolicy(MissingError, code="unknown_policy"):
    """The capability has no policy of its own."""


class UnknownTrace(MissingError, code="unknown_trace"):
    """No trace is kept under this id."""


class UnknownMember(MissingError, code="unknown_member"):
    """The cluster has no member of this id."""


class IndexExpired(MissingError, code="index_expired", status=410):
    """The stream would begin at an index that is gone: start over."""


class RegistrationError(CallerError, status=422):
    """The registration can't stand as it is."""


class DuplicateCapability(RegistrationError, code="duplicate_capability"):
    """One registration names the same capability twice."""


class DependencyCycle(RegistrationError, code="dependency_cycle"):
    """The declared dependencies form a cycle, named in the message."""


class EmbeddingMismatch(RegistrationError, code="embedding_mismatch"):
    """The vector is of another model or dimension than the cluster's embedder."""


class EndpointRefused(RegistrationError, code="endpoint_refused"):
    """The endpoint is a loopback, wildcard, link-local or metadata address."""


class ConflictError(ReachError, status=409):
    """The request contradicts what stands now."""


class AgentIdInUse(ConflictError, code="agent_id_in_use"):
    """Another live instance holds this `agent_id`."""


class CapabilityTaken(ConflictError, code="capability_taken"):
    """Names are exclusive, and another agent owns this one."""


class Superseded(ConflictError, code="superseded"):
    """A newer incarnation took this one's place."""


class WouldUncover(ConflictError, code="would_uncover"):
    """A capability would be left without an instance: `force` does it all the same."""


class ClusterChanging(ConflictError, code="cluster_changing", can_retry=True):
    """A membership change is under way."""


class NotLeader(ConflictError, code="not_leader"):
    """Only the leader can do this; `details` name it."""


class StaleLease(ConflictError, code="stale_lease"):
    """The ticket's lease was lost to another holder."""


class InProgress(ConflictError, code="in_progress", can_retry=True):
    """A call under the same idempotency key is still running."""


class RevisionConflict(ConflictError, code="revision_conflict", status=412):
    """The document was changed since the revision named in `If-Match`."""


class LoadError(ReachError, status=503):
    """There is no room for this now."""


class Busy(LoadError, code="busy", can_retry=True):
    """All queues are full, or every instance said busy."""


class RateLimited(LoadError, code="rate_limited", status=429, can_retry=True):
    """The caller or the capability is over its rate."""


class QuotaExceeded(LoadError, code="quota_exceeded", status=429, can_retry=True):
    """A quota of tickets, tokens or bytes is used up."""


class CircuitOpen(LoadError, code="circuit_open", can_retry=True):
    """The capability fails too often just now, and rests."""


class TargetError(ReachError, status=502):
    """The instances that could answer are at fault, or the way to them."""


class NoReachableAgent(TargetError, code="no_reachable_agent", status=503, can_retry=True):
    """Instances offer the capability, but every one of them was ruled out."""


class ConnectFailed(TargetError, code="connect_failed", can_retry=True):
    """No connection could be made; nothing was sent."""


class AgentRejected(TargetError, code="agent_rejected", status=422):
    """The agent found the call at fault (4xx); its status is in `details`."""


class AgentError(TargetError, code="agent_error"):
    """The agent answered 5xx or broke its protocol."""


class BusinessError(TargetError, code="business_error", status=200):
    """The agent worked and said no: an answer of its own kind, not a failure of the call."""


class UpstreamRedirect(TargetError, code="upstream_redirect"):
    """The agent answered with a redirect, which is not followed."""


class ResultTooLarge(TargetError, code="result_too_large"):
    """The agent answered more than allowed."""


class StreamInterrupted(TargetError, code="stream_interrupted"):
    """The stream broke after its first byte."""


class TimeError(ReachError, status=504):
    """Time ran out, or an answer never came."""


class DeadlineExceeded(TimeError, code="deadline_exceeded", can_retry=True):
    """Time ran out and nothing was sent, or the call is idempotent."""


class UnknownOutcome(TimeError, code="unknown_outcome"):
    """It may have happened: repeat it only under the same id or idempotency key."""


class ClusterError(ReachError, status=503):
    """The cluster, or this node of it, can't do this now."""


class NoQuorum(ClusterError, code="no_quorum", can_retry=True):
    """This node is cut off from a majority; nothing was changed."""


class TooStale(ClusterError, code="too_stale", can_retry=True):
    """This node's table wasn't fresh enough in time."""


class DiskFull(ClusterError, code="disk_full", can_retry=True):
    """The disk is full: changes are refused; reads and calls go on."""


class ShuttingDown(ClusterError, code="shutting_down", can_retry=True):
    """This node is about to stop: ask another."""


class HttpError(ReachError, status=400):
    """The request isn't one this server understands as HTTP."""


class NotFound(HttpError, code="not_found", status=404):
    """There is nothing at this path."""


class MethodNotAllowed(HttpError, code="method_not_allowed", status=405):
    """The path doesn't take this method; `Allow` lists those it takes."""


class UnsupportedMediaType(HttpError, code="unsupported_media_type", status=415):
    """The body's type isn't read here."""


class HeadersTooLarge(HttpError, code="headers_too_large", status=431):
    """The headers are larger than allowed."""


class UriTooLong(HttpError, code="uri_too_long", status=414):
    """The request's target is longer than allowed."""


class RequestTimeout(HttpError, code="request_timeout", status=408):
    """The request didn't arrive whole in time."""


class Internal(ReachError, code="internal"):
    """A fault of ours, logged with the request id."""


# No client sees these: the node stops with the exit status that its fail-stop table names.


class UnknownCommand(Exception):
    """The log holds what this program can't read, so it was written by a newer one."""


class BadSnapshot(Exception):
    """A snapshot can't be read, or isn't whole."""


def leaves(branch: type[ReachError] = ReachError) -> Iterator[type[ReachError]]:
    """Yield every error with a code at or under a branch, in the order of this file."""
    if branch.code:
        yield branch
    for below in branch.__subclasses__():
        yield from leaves(below)


BY_CODE: Mapping[str, type[ReachError]] = {leaf.code: leaf for leaf in leaves()}
"""Every leaf by its code."""


def error_of(code: str, why: str = "", *, details: Mapping[str, Any] | None = None) -> ReachError:
    """Return the error of a code that came from elsewhere; `internal` if it is not known."""
    leaf = BY_CODE.get(code)
    if leaf is None:
        return Internal(f"unknown error code {code!r}: {why}", details=details)
    return leaf(why, details=details)


def reference_page() -> str:
    """Return `docs/reference/errors.md`, made of the classes of this file."""
    rows = [
        f"| `{leaf.code}` | {leaf.status} | {retry} | {leaf.meaning()} |"
        for leaf in leaves()
        for retry in ("yes" if leaf.can_retry else "no",)
    ]
    head = (
        "# Errors\n\n"
        "One code has one meaning on every surface.\n"
        "`can_retry` says whether repeating the very same request later may help and is safe.\n\n"
        "| code | HTTP | can_retry | when |\n"
        "| --- | --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"
