"""What an instance can do: one capability as the registry keeps it.

Reading one from a client's JSON, in all its spellings, is `reachnode.wire`; here is the one
canonical form.
"""

from typing import Literal

from reachnode.model.nouns import Noun

Protocol = Literal["rest", "grpc", "websocket", "redis_stream", "link", "pull"]
EnvelopeForm = Literal["payload", "atp"]
TrustLevel = Literal["internal", "partner", "user", "public"]
JsonText = str
"""A JSON document kept as its text: immutable, compact, and passed on without parsing."""


class Dependency(Noun, frozen=True, kw_only=True):
    """What a capability needs to work: another capability, or a resource with an endpoint."""

    capability: str = ""
    """The capability needed; empty when a resource is."""
    resource: str = ""
    """The resource needed, a name for people; empty when a capability is."""
    endpoint: str = ""
    """Where the resource is probed."""
    required: bool = True
    """Whether the capability is unreachable without it."""


class Capability(Noun, frozen=True, kw_only=True):
    """One thing an instance can do, and how it is asked to."""

    name: str
    protocol: Protocol
    endpoint: str
    """Absolute: relative ones were resolved against `base_url` before."""
    version: str = ""
    """Semantic, in full (`3.2.0`); empty when none was said."""
    description: str = ""
    envelope: EnvelopeForm | None = None
    """What travels to the agent; None leaves it to the protocol."""
    timeout_sla_ms: int | None = None
    max_payload_bytes: int | None = None
    max_concurrency: int | None = None
    input_schema: JsonText | None = None
    """A JSON Schema, or a JSON string with a URI that is an opaque contract id."""
    output_schema: JsonText | None = None
    dependencies: tuple[Dependency, ...] = ()
    cost: JsonText | None = None
    idempotent: bool = False
    trust_level: TrustLevel | None = None
    """The least level a caller needs; None demands nothing."""
    fallback_group: str = ""
    permissions: tuple[str, ...] = ()
    """What the agent says a caller needs: kept and shown. Grants decide who may call."""
