"""What keeps a registration from being proposed."""

import math

import pytest
from msgspec.structs import replace

from reachnode.model.agents import Health, HeartbeatWish, Instance, Metadata, instance_problems
from reachnode.model.capabilities import Capability, Dependency

ECHO = Capability(name="demo.echo", protocol="rest", endpoint="http://10.0.0.7/echo")


def instance(**changes: object) -> Instance:
    """Return a good registration, with some fields changed."""
    good = Instance(
        agent_id="a1",
        agent="nlp",
        capabilities=(ECHO,),
        name="Echo, the first",
        metadata=Metadata(zone="z1", weight=0.0, max_qps=5.0, tags=(("gpu", ""), ("tier", "1"))),
        health=Health(type="http", endpoint="http://10.0.0.7/health", interval_ms=5_000),
        heartbeat=HeartbeatWish(interval_ms=3_000, ttl_ms=9_000),
    )
    return replace(good, **changes)


def echo(**changes: object) -> Instance:
    """Return a registration whose one capability is changed."""
    return instance(capabilities=(replace(ECHO, **changes),))


def said(changed: Instance) -> list[tuple[str, str]]:
    """Return where it is wrong, and what code that amounts to."""
    return [(problem.at, problem.code) for problem in instance_problems(changed)]


def test_a_good_registration_has_no_problem() -> None:
    """Everything the contract allows is taken."""
    assert instance_problems(instance()) == ()
    assert instance_problems(Instance(agent_id="a1", agent="a1")) == ()
    every = echo(
        timeout_sla_ms=5_000,
        max_payload_bytes=1,
        max_concurrency=64,
        input_schema='{"type": "object"}',
        output_schema='"urn:contract:7"',
        cost="0.5",
        fallback_group="echoes",
        dependencies=(
            Dependency(capability="model.chat"),
            Dependency(resource="vectors", endpoint="tcp://10.0.0.9:6333", required=False),
        ),
    )
    assert instance_problems(every) == ()


@pytest.mark.parametrize(
    ("changed", "at"),
    [
        (instance(agent_id="a 1"), "agent_id"),
        (instance(agent=""), "agent"),
        (instance(name="\x00"), "name"),
        (instance(health=Health(type="tcp", interval_ms=0)), "health.interval_ms"),
        (instance(heartbeat=HeartbeatWish(interval_ms=-1)), "heartbeat.interval_ms"),
        (instance(heartbeat=HeartbeatWish(ttl_ms=2**53 + 1)), "heartbeat.ttl_ms"),
        (instance(metadata=Metadata(zone="\n")), "metadata.zone"),
        (instance(metadata=Metadata(weight=-0.5)), "metadata.weight"),
        (instance(metadata=Metadata(weight=math.nan)), "metadata.weight"),
        (instance(metadata=Metadata(weight=math.inf)), "metadata.weight"),
        (instance(metadata=Metadata(max_qps=0.0)), "metadata.max_qps"),
        (instance(metadata=Metadata(max_concurrency=0)), "metadata.max_concurrency"),
        (instance(metadata=Metadata(tags=(("", "x"),))), "metadata.tags.''"),
        (instance(metadata=Metadata(tags=(("a", "\t"),))), "metadata.tags.'a'"),
        (instance(metadata=Metadata(tags=(("b", ""), ("a", "")))), "metadata.tags"),
        (instance(metadata=Metadata(tags=(("a", ""), ("a", "")))), "metadata.tags"),
        (
            instance(metadata=Metadata(tags=tuple((f"t{n:03}", "") for n in range(101)))),
            "metadata.tags",
        ),
        (
            instance(capabilities=tuple(replace(ECHO, name=f"c{n}") for n in range(1_001))),
            "capabilities",
        ),
        (echo(name="demo echo"), "capabilities[0].name"),
        (echo(endpoint=""), "capabilities[0].endpoint"),
        (echo(timeout_sla_ms=0), "capabilities[0].timeout_sla_ms"),
        (echo(max_payload_bytes=0), "capabilities[0].max_payload_bytes"),
        (echo(max_concurrency=0), "capabilities[0].max_concurrency"),
        (echo(input_schema="{"), "capabilities[0].input_schema"),
        (echo(output_schema="[" * 100_000), "capabilities[0].output_schema"),
        (echo(cost=""), "capabilities[0].cost"),
        (echo(fallback_group="\x7f"), "capabilities[0].fallback_group"),
        (echo(permissions=("",)), "capabilities[0].permissions[0]"),
        (
            echo(permissions=tuple(f"p{n}" for n in range(101))),
            "capabilities[0].permissions",
        ),
        (echo(dependencies=(Dependency(),)), "capabilities[0].dependencies[0]"),
        (
            echo(dependencies=(Dependency(capability="a", resource="b", endpoint="c"),)),
            "capabilities[0].dependencies[0]",
        ),
        (
            echo(dependencies=(Dependency(capability="a/b"),)),
            "capabilities[0].dependencies[0].capability",
        ),
        (
            echo(dependencies=(Dependency(resource="vectors"),)),
            "capabilities[0].dependencies[0].endpoint",
        ),
        (
            echo(dependencies=tuple(Dependency(capability=f"c{n}") for n in range(101))),
            "capabilities[0].dependencies",
        ),
    ],
)
def test_a_wrong_field_is_named(changed: Instance, at: str) -> None:
    """The one thing that is wrong is found, at its place."""
    assert said(changed) == [(at, "invalid_request")]


@pytest.mark.parametrize("protocol", ["link", "pull"])
def test_an_agent_that_dials_in_needs_no_endpoint(protocol: str) -> None:
    """Where the agent comes to the node, there is nothing to call."""
    assert instance_problems(echo(protocol=protocol, endpoint="")) == ()


def test_a_capability_named_twice_is_a_fault_of_its_own() -> None:
    """Both places are named, and the code is the contract's."""
    (problem,) = instance_problems(instance(capabilities=(ECHO, ECHO)))
    assert (problem.at, problem.code) == ("capabilities[1].name", "duplicate_capability")
    assert problem.why == "'demo.echo' is also capabilities[0]"


def test_all_that_is_wrong_is_said_at_once() -> None:
    """Whoever registers corrects it in one go."""
    changed = instance(agent_id="", agent="", capabilities=(replace(ECHO, name=""),))
    assert [at for at, _ in said(changed)] == ["agent_id", "agent", "capabilities[0].name"]
