"""Discovery: what is asked, how an instance is seen, and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.model.liveness import InstanceState, Liveness

Reason = Literal[
    "version",
    "tags",
    "hint",
    "state",
    "address_family",
    "unreachable_from_here",
    "session_pinned",
    "dependency",
    "limit",
    "breaker",
]
REASONS_OF_DECLARATION: frozenset[Reason] = frozenset({"version", "tags", "hint"})
"""Why an instance doesn't fit whatever its health: waiting won't help."""

Pairs = tuple[tuple[str, str], ...]
"""Names with values, sorted by name; an empty value stands for any."""
AddressFamily = Literal["ipv4", "ipv6"]
BOTH_FAMILIES: frozenset[AddressFamily] = frozenset({"ipv4", "ipv6"})

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000
HINTS_MAX = 10
"""Requirements, and preferences, of one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An instance as a client sees it: what it registered, and how it is."""

    instance: Instance
    index: int
    """The log index that last changed it."""
    state: InstanceState
    """What was announced of it, else what was seen."""
    liveness: Liveness


@dataclass(frozen=True, slots=True, kw_only=True)
class Vantage:
    """From where instances are looked at."""

    node_id: str
    families: frozenset[AddressFamily] = BOTH_FAMILIES
    """The address families this node can reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a caller asks of discovery."""

    capability: str = ""
    """An exact name; empty when it is asked for by meaning."""
    text: str = ""
    """What is wanted, in any words."""
    version: str = ""
    """A version range; empty takes any version."""
    tags: Pairs = ()
    """Tags it must have; an empty value asks for the tag alone."""
    require: Pairs = ()
    """Routing hint: match or fail."""
    prefer: Pairs = ()
    """Routing hint: orders, never excludes."""
    limit: int = LIMIT_DEFAULT
    explain: bool = False
    """Whether exclusions are told beside candidates too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """An instance that offers the capability and may not be asked."""

    agent_id: str
    agent: str
    reason: Reason
    detail: str
    """What is so, a sentence without its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An instance that may be asked."""

    seen: Seen
    capability: Capability
    score: float
    """0 to 1, never rising from one candidate to the next."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the score is made of, each 0 to 1."""

    @property
    def agent_id(self) -> str:
        """The instance."""
        return self.seen.instance.agent_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why nobody can be asked."""

    code: Literal["unknown_capability", "no_matching_agent", "no_reachable_agent"]
    """The error that a call would get now."""
    capability: str
    missing: str
    """What is missing, a sentence without its end."""
    excluded: tuple[Exclusion, ...] = ()
    """The first of them, sorted by `agent_id`."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many instances each reason excludes."""
    close_names: tuple[str, ...] = ()
    """Capabilities that are declared and read alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of discovery."""

    candidates: tuple[Candidate, ...]
    """The best first."""
    excluded: tuple[Exclusion, ...]
    """Who offers it and may not be asked, where the question wants it explained."""
    gap: Gap | None
    """None unless there is no candidate."""


ChangeKind = Literal["put", "delete", "state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a watcher is told of one instance."""

    kind: ChangeKind
    agent_id: str
    seen: Seen | None
    """None where it is gone."""
