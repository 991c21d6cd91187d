"""The settings that the whole cluster shares: one replicated document, swapped whole.

What belongs to one node (its name, ports, directories) is `reachnode.model.config`.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from reachnode.model.nouns import Noun
from reachnode.model.words import Problem, shown, why_not_label

CapabilityNames = Literal["shared", "exclusive"]
POLICIES = (
    "least_load",
    "weighted_least_conn",
    "weighted_round_robin",
    "weighted_random",
    "consistent_hash",
    "scored",
    "cost_aware",
)
DAY_MS = 86_400_000
COUNT_MAX = 1_000_000


class Section(Noun, frozen=True):
    """A part of the settings; only what differs from the default is written.

    So a setting that is added later costs an older program nothing until it is used.
    """

    def __post_init__(self) -> None:
        """Put the default itself where a value equals it: defaults are left out by identity."""
        fields = self.__struct_fields__
        for name, default in zip(
            fields[len(fields) - len(self.__struct_defaults__) :],
            self.__struct_defaults__,
            strict=True,
        ):
            value = getattr(self, name)
            if value is not default and value == default:
                msgspec.structs.force_setattr(self, name, default)


class Timeouts(Section, frozen=True, kw_only=True):
    """The parts of a call's time; the caller's one deadline rules over all of them."""

    connect_ms: int = 2_000
    first_byte_ms: int = 30_000
    idle_ms: int = 60_000
    total_ms: int = 60_000


class Retries(Section, frozen=True, kw_only=True):
    """How often a call that is safe to repeat is tried again."""

    max: int = 2
    backoff_ms: int = 200
    budget_percent: float = 20.0


class CircuitBreaker(Section, frozen=True, kw_only=True):
    """When a capability or an instance rests."""

    error_percent: float = 50.0
    min_requests: int = 20
    window_ms: int = 10_000
    consecutive_failures: int = 20
    cooldown_ms: int = 10_000


class Defaults(Section, frozen=True, kw_only=True):
    """What holds for a capability that has no policy of its own."""

    policy: str = "weighted_least_conn"
    timeout: Timeouts = Timeouts()
    retry: Retries = Retries()
    circuit_breaker: CircuitBreaker = CircuitBreaker()


class RegistryRules(Section, frozen=True, kw_only=True):
    """How instances register and how their silence is read."""

    heartbeat_interval_ms: int = 3_000
    suspect_after_ms: int = 10_000
    forget_after_ms: int = 600_000
    capability_names: CapabilityNames = "shared"
    allow_local_endpoints: Literal["auto"] | bool = "auto"


class ProbeRules(Section, frozen=True, kw_only=True):
    """How instances are probed."""

    interval_ms: int = 5_000
    timeout_ms: int = 2_000
    failures: int = 3


class SemanticRules(Section, frozen=True, kw_only=True):
    """How capabilities are found by meaning."""

    embedder: str = "none"
    """`none`, `local` or `reach:NAME`."""
    auto_route_threshold: float | None = None
    """0 to 1; None takes the embedder's measured one."""
    discover_threshold: float | None = None
    top_k: int = 10


class Settings(Section, frozen=True, kw_only=True):
    """The whole document."""

    defaults: Defaults = Defaults()
    registry: RegistryRules = RegistryRules()
    probes: ProbeRules = ProbeRules()
    semantic: SemanticRules = SemanticRules()


class SettingsRevision(Noun, frozen=True, kw_only=True):
    """One version of the settings, and the log index that made it."""

    revision: int
    index: int
    settings: Settings


BOUNDS: tuple[tuple[str, float, float], ...] = (
    ("defaults.timeout.connect_ms", 1, DAY_MS),
    ("defaults.timeout.first_byte_ms", 1, DAY_MS),
    ("defaults.timeout.idle_ms", 1, DAY_MS),
    ("defaults.timeout.total_ms", 1, DAY_MS),
    ("defaults.retry.max", 0, 10),
    ("defaults.retry.backoff_ms", 0, DAY_MS),
    ("defaults.retry.budget_percent", 0, 100),
    ("defaults.circuit_breaker.error_percent", 0, 100),
    ("defaults.circuit_breaker.min_requests", 1, COUNT_MAX),
    ("defaults.circuit_breaker.window_ms", 1, DAY_MS),
    ("defaults.circuit_breaker.consecutive_failures", 1, COUNT_MAX),
    ("defaults.circuit_breaker.cooldown_ms", 1, DAY_MS),
    ("registry.heartbeat_interval_ms", 100, DAY_MS),
    ("registry.suspect_after_ms", 100, DAY_MS),
    ("registry.forget_after_ms", 1, 366 * DAY_MS),
    ("probes.interval_ms", 100, DAY_MS),
    ("probes.timeout_ms", 1, DAY_MS),
    ("probes.failures", 1, 100),
    ("semantic.auto_route_threshold", 0, 1),
    ("semantic.discover_threshold", 0, 1),
    ("semantic.top_k", 1, 1_000),
)
"""Every number of the settings with the least and the most it may be."""


def settings_problems(settings: Settings) -> tuple[Problem, ...]:
    """Return everything that keeps settings from being proposed, in reading order."""
    return tuple(_settings_problems(settings))


def _settings_problems(settings: Settings) -> Iterator[Problem]:
    policy = settings.defaults.policy
    if policy not in POLICIES:
        yield Problem(
            at="defaults.policy", why=f"{shown(policy)} isn't one of {', '.join(POLICIES)}"
        )
    for at, least, most in BOUNDS:
        number = value_at(settings, at)
        if number is not None and (math.isnan(number) or not least <= number <= most):
            yield Problem(at=at, why=f"{number} isn't from {least} to {most}")
    if settings.registry.suspect_after_ms <= settings.registry.heartbeat_interval_ms:
        yield Problem(
            at="registry.suspect_after_ms", why="it must exceed registry.heartbeat_interval_ms"
        )
    embedder = settings.semantic.embedder
    is_reach = embedder.startswith("reach:") and not why_not_label(embedder)
    if embedder not in {"none", "local"} and not (is_reach and embedder != "reach:"):
        yield Problem(
            at="semantic.embedder", why=f"{shown(embedder)} isn't none, local or reach:NAME"
        )


def value_at(settings: Settings, at: str) -> Any:
    """Return what stands at a dotted place of the settings, such as `probes.failures`."""
    value: Any = settings
    for name in at.split("."):
        value = getattr(value, name)
    return value
