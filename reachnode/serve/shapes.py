"""The documents of the client port: what is taken and given, as clients see it.

The model's nouns keep tags as pairs and schemas as text; outside they are plain documents.
Tests hold that no field of the model is missing here.
"""

from typing import Annotated, Any, Literal

import msgspec

from reachnode.model.agents import NUMBER_MAX, AddressType, Health, HeartbeatWish
from reachnode.model.capabilities import Dependency, EnvelopeForm, Protocol, TrustLevel
from reachnode.model.discovery import Reason
from reachnode.model.liveness import Basis, InstanceState
from reachnode.model.settings import Defaults, ProbeRules, RegistryRules, SemanticRules
from reachnode.registry.commands import AnnouncedState


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A document with all its fields, always."""


class Alive(Shape, frozen=True, kw_only=True):
    """The process is alive."""

    status: Literal["UP"]


class Readiness(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a node can serve, and what keeps it from it."""

    ready: bool
    reason: str = ""
    waits_for: str = ""


class StateWish(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an instance, or an operator for it, announces."""

    state: AnnouncedState
    incarnation: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)] | None = None
    force: bool = False
    """Whether a capability may be left without an instance."""


class MemberAction(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done to a member: `replace` admits the disk that it came back with."""

    action: Literal["replace"]
    id: str


class Registered(Shape, frozen=True, kw_only=True):
    """An instance is registered; how it is to beat, and to which nodes it may."""

    agent_id: str
    state: str
    index: int
    incarnation: int
    heartbeat_interval_ms: int
    lease_ms: int
    nodes: list[str]
    warnings: list[str]


class Deregistered(Shape, frozen=True, kw_only=True):
    """An instance is gone."""

    agent_id: str
    index: int


class Announced(Shape, frozen=True, kw_only=True):
    """An instance is in an announced state."""

    agent_id: str
    state: str
    index: int


class MemberShown(Shape, frozen=True, kw_only=True):
    """One member of the cluster."""

    id: str
    address: str
    role: str
    alive: bool
    index: int | None
    lag_ms: int | None


class ClusterShown(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """The cluster as one node sees it."""

    cluster_id: str | None
    node: str
    client_address: str
    phase: str
    role: str
    leader: str | None
    term: int
    index: int
    commit_index: int
    synced_index: int
    quorum: bool
    disk: str
    level: int
    members: list[MemberShown]
    agents: dict[str, int]
    founding_waits_for: list[str] = []


class MemberChanged(Shape, frozen=True, kw_only=True):
    """A member's disk is admitted."""

    id: str
    index: int


class Transferred(Shape, frozen=True, kw_only=True):
    """Leadership was handed over."""

    node: str
    leader: str | None


class Problem(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """Problem details (RFC 9457)."""

    title: str
    status: int
    detail: str
    code: str
    can_retry: bool
    request_id: str
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None


class CapabilityShown(Shape, frozen=True, kw_only=True):
    """One thing an instance can do, and how it is asked to."""

    name: str
    protocol: Protocol | None = None
    """Left out, what the scheme of the endpoint speaks of."""
    endpoint: str | None = None
    version: str | None = None
    description: str | None = None
    envelope: EnvelopeForm | None = None
    timeout_sla_ms: int | None = None
    max_payload_bytes: int | None = None
    max_concurrency: int | None = None
    input_schema: Any = None
    output_schema: Any = None
    dependencies: list[str | Dependency] | None = None
    cost: Any = None
    idempotent: bool | None = None
    trust_level: TrustLevel | None = None
    fallback_group: str | None = None
    permissions: list[str] | None = None


class MetadataShown(Shape, frozen=True, kw_only=True):
    """What routing may go by."""

    zone: str | None = None
    env: str | None = None
    team: str | None = None
    tier: str | None = None
    model: str | None = None
    semver: str | None = None
    routing_policy: str | None = None
    weight: float | None = None
    max_qps: float | None = None
    max_concurrency: int | None = None
    tags: dict[str, str] | list[str] | None = None


class RegistrationShown(Shape, frozen=True, kw_only=True):
    """What an instance says of itself. Unknown fields are passed over with a warning."""

    agent_id: str
    agent: str | None = None
    capabilities: list[str | CapabilityShown] | None = None
    name: str | None = None
    base_url: str | None = None
    address_type: AddressType | None = None
    metadata: MetadataShown | None = None
    health: Health | None = None
    heartbeat: HeartbeatWish | None = None
    direct_fallback: bool | None = None
    incarnation: int | None = None
    replace: bool | None = None


class HeartbeatShown(Shape, frozen=True, kw_only=True):
    """What an instance says of itself. Unknown fields are passed over with a warning."""

    agent_id: str | None = None
    """Needed where the path doesn't say it."""
    incarnation: int | None = None
    load: float | None = None
    """0 to 1; what lies beyond is brought to the nearer end."""
    in_flight: int | None = None
    self_check: bool | None = None
    counters: dict[str, int] | None = None
    state: AnnouncedState | None = None


class Beaten(Shape, frozen=True, kw_only=True):
    """A heartbeat is taken; when the next one is due, and where else it may go."""

    agent_id: str
    state: InstanceState
    incarnation: int
    heartbeat_interval_ms: int
    lease_ms: int
    nodes: list[str]
    warnings: list[str]


class LivenessShown(Shape, frozen=True, kw_only=True):
    """What is known of an instance beside its state; null is what nobody knows."""

    home: str | None
    """The node it beats to."""
    age_ms: int | None
    """Since its last heartbeat."""
    load: float | None
    in_flight: int | None
    unreachable_from: list[str]
    """Nodes whose probes of it fail."""
    why: str
    basis: Basis
    """Whose evidence the state stands on."""


class InstanceShown(LivenessShown, frozen=True, kw_only=True):
    """A registered instance, and what is known of it."""

    agent_id: str
    agent: str
    metadata: MetadataShown
    state: InstanceState
    incarnation: int
    index: int
    capabilities: list[CapabilityShown] | None = None
    name: str | None = None
    base_url: str | None = None
    address_type: AddressType | None = None
    health: Health | None = None
    heartbeat: HeartbeatWish | None = None
    direct_fallback: bool | None = None


class InstancePage(Shape, frozen=True, kw_only=True):
    """Some instances, and where the next ones begin."""

    items: list[InstanceShown]
    next: str | None


class TaskShown(Shape, frozen=True, kw_only=True):
    """A task, named or told in words."""

    task_type: str | None = None
    text: str | None = None
    params: Any = None


class QuestionShown(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of discovery."""

    capability: str | None = None
    text: str | None = None
    task_spec: TaskShown | None = None
    version: str | None = None
    """A range, such as `^3.2`."""
    tags: dict[str, str | None] | list[str] | None = None
    """Tags it must have; an empty value asks for the tag alone."""
    routing_hint: dict[str, Any] | None = None
    limit: int | None = None
    explain: bool | None = None
    """Whether to tell who was excluded though there are candidates."""


class CandidateShown(LivenessShown, frozen=True, kw_only=True):
    """An instance that may be called."""

    agent_id: str
    agent: str
    capability: str
    version: str | None
    protocol: Protocol
    endpoint: str | None
    envelope: EnvelopeForm | None
    state: InstanceState
    score: float
    """0 to 1, never rising from one candidate to the next."""
    parts: dict[str, float]
    """What the score is made of."""
    timeout_sla_ms: int | None
    idempotent: bool
    direct_fallback: bool
    incarnation: int
    index: int
    metadata: MetadataShown


class ExclusionShown(Shape, frozen=True, kw_only=True):
    """An instance that offers the capability and may not be called."""

    agent_id: str
    agent: str
    reason: Reason
    detail: str


class GapShown(Shape, frozen=True, kw_only=True):
    """Why nobody can be called."""

    code: Literal["unknown_capability", "no_matching_agent", "no_reachable_agent"]
    """The error that a call would get now."""
    capability: str
    missing: str
    reasons: dict[str, int]
    """How many instances each reason excludes."""
    excluded: list[ExclusionShown]
    close_names: list[str]


class FoundShown(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """Who can be called, the best first, or why nobody can."""

    candidates: list[CandidateShown]
    gap: GapShown | None
    index: int
    excluded: list[ExclusionShown] = []


class SettingsShown(Shape, frozen=True, kw_only=True):
    """The settings that the whole cluster shares, every default spelled out."""

    defaults: Defaults
    registry: RegistryRules
    probes: ProbeRules
    semantic: SemanticRules
    revision: int
    index: int


class SettingsPut(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New settings, whole: what is left out returns to its default."""

    defaults: Defaults | None = None
    registry: RegistryRules | None = None
    probes: ProbeRules | None = None
    semantic: SemanticRules | None = None
    revision: int | None = None
    index: int | None = None
