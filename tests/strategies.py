"""What Hypothesis draws: nouns, commands and logs, from small pools so that they meet."""

from hypothesis import strategies as st

from reachnode.model.agents import Health, HeartbeatWish, Instance, Metadata
from reachnode.model.capabilities import Capability, Dependency
from reachnode.model.settings import (
    CircuitBreaker,
    Defaults,
    ProbeRules,
    RegistryRules,
    Retries,
    SemanticRules,
    Settings,
    Timeouts,
)
from reachnode.registry.apply import apply
from reachnode.registry.commands import (
    LEVEL_MAX,
    Advance,
    Command,
    Deregister,
    Envelope,
    Forget,
    Mark,
    MarkDown,
    MarkUp,
    PutSettings,
    RaiseLevel,
    Register,
    ReplaceMember,
    SetAgentState,
)
from reachnode.registry.state import State, genesis

AGENT_IDS = ("a1", "a2", "b1", "b2")
AGENTS = ("nlp", "search")
CAPABILITIES = ("intent.detect", "order.search", "demo.echo", "意图.识别")
MEMBERS = ("n1", "n2", "n3")
DISKS = ("d0", "d1", "d2", "d3")

words = st.text(st.characters(codec="utf-8"), max_size=8)
counts = st.integers(1, 2**53)
numbers = st.floats(0, 1e9)
agent_ids = st.sampled_from(AGENT_IDS)
request_ids = st.sampled_from([f"r{n}" for n in range(12)])

dependencies = st.builds(
    Dependency,
    capability=st.sampled_from(CAPABILITIES),
    resource=words,
    endpoint=words,
    required=st.booleans(),
)

capabilities = st.builds(
    Capability,
    name=st.sampled_from(CAPABILITIES),
    protocol=st.sampled_from(["rest", "grpc", "websocket", "redis_stream", "link", "pull"]),
    endpoint=words,
    version=st.sampled_from(["", "1.0.0", "3.2.0"]),
    description=words,
    envelope=st.sampled_from([None, "payload", "atp"]),
    timeout_sla_ms=st.none() | counts,
    max_payload_bytes=st.none() | counts,
    max_concurrency=st.none() | counts,
    input_schema=st.sampled_from([None, "true", '{"type":"object"}']),
    output_schema=st.sampled_from([None, '"urn:contract:7"']),
    dependencies=st.lists(dependencies, max_size=2).map(tuple),
    cost=st.sampled_from([None, '{"per_call":1}']),
    idempotent=st.booleans(),
    trust_level=st.sampled_from([None, "internal", "partner", "user", "public"]),
    fallback_group=words,
    permissions=st.lists(words, max_size=2).map(tuple),
)

metadata = st.builds(
    Metadata,
    zone=st.sampled_from(["", "z1", "z2"]),
    env=words,
    team=words,
    tier=words,
    model=words,
    semver=words,
    routing_policy=words,
    weight=st.none() | numbers,
    max_qps=st.none() | numbers,
    max_concurrency=st.none() | counts,
    tags=st.dictionaries(words, words, max_size=2).map(lambda tags: tuple(sorted(tags.items()))),
)

health = st.builds(
    Health,
    type=st.sampled_from(["http", "tcp", "grpc", "websocket", "none"]),
    endpoint=words,
    interval_ms=st.none() | counts,
)

instances = st.builds(
    Instance,
    agent_id=agent_ids,
    agent=st.sampled_from(AGENTS),
    # Now and then one is named twice, which is refused.
    capabilities=st.lists(capabilities, max_size=3).map(tuple),
    name=words,
    base_url=words,
    address_type=st.sampled_from([None, "ipv4", "ipv6", "dual"]),
    metadata=metadata,
    health=st.none() | health,
    heartbeat=st.none()
    | st.builds(HeartbeatWish, interval_ms=st.none() | counts, ttl_ms=st.none() | counts),
    direct_fallback=st.booleans(),
    incarnation=st.integers(0, 3),
)

settings_documents = st.builds(
    Settings,
    defaults=st.builds(
        Defaults,
        policy=st.sampled_from(["scored", "weighted_least_conn"]),
        timeout=st.builds(Timeouts, total_ms=st.integers(1, 90_000)),
        retry=st.builds(
            Retries, max=st.integers(0, 3), budget_percent=st.sampled_from([5.0, 20.0])
        ),
        circuit_breaker=st.builds(CircuitBreaker, error_percent=st.floats(0, 100)),
    ),
    registry=st.builds(
        RegistryRules,
        forget_after_ms=st.sampled_from([600_000, 1_000, 1]),
        capability_names=st.sampled_from(["shared", "exclusive"]),
        allow_local_endpoints=st.sampled_from(["auto", True, False]),
    ),
    probes=st.builds(ProbeRules, failures=st.integers(1, 5)),
    semantic=st.builds(
        SemanticRules,
        embedder=st.sampled_from(["none", "local"]),
        auto_route_threshold=st.none() | st.floats(0, 1),
    ),
)

registers = st.builds(Register, instance=instances, replaces=st.none() | st.integers(0, 4))
incarnations = st.none() | st.integers(1, 4)
marks = st.lists(
    st.builds(Mark, agent_id=agent_ids, incarnation=st.integers(1, 4)), max_size=4
).map(tuple)

commands: st.SearchStrategy[Command] = st.one_of(
    registers,
    st.builds(Deregister, agent_id=agent_ids, incarnation=incarnations),
    st.builds(
        SetAgentState,
        agent_id=agent_ids,
        state=st.sampled_from(["updating", "healthy", "disabled"]),
        incarnation=incarnations,
    ),
    st.builds(MarkDown, marks=marks),
    st.builds(MarkUp, marks=marks),
    st.builds(Forget, marks=marks),
    st.builds(PutSettings, document=settings_documents, revision=st.none() | st.integers(0, 3)),
    st.builds(Advance, by_ms=st.integers(-1, 2_001)),
    st.builds(
        ReplaceMember,
        member_id=st.sampled_from([*MEMBERS, "n9"]),
        incarnation=st.sampled_from(DISKS),
    ),
    st.builds(RaiseLevel, level=st.integers(0, LEVEL_MAX)),
)

envelopes = st.builds(
    Envelope, request_id=request_ids | st.just(""), since_index=st.integers(0, 9), command=commands
)

logs = st.lists(envelopes, max_size=30)


def fresh_state(*, requests_max: int = 6) -> State:
    """Return a founded state of three members, with a window small enough to overflow."""
    return genesis("c1", dict.fromkeys(MEMBERS, "d0"), requests_max=requests_max)


def after(log: list[Envelope], state: State | None = None) -> State:
    """Return the state after a log, one envelope at each index from 1."""
    state = state or fresh_state()
    for index, envelope in enumerate(log, start=1):
        state, _ = apply(state, index, envelope)
    return state


states = logs.map(after)
