"""The settings that the whole cluster shares."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from reachnode.model.settings import (
    BOUNDS,
    Defaults,
    ProbeRules,
    RegistryRules,
    SemanticRules,
    Settings,
    settings_problems,
    value_at,
)
from tests.strategies import settings_documents


def document(at: str, value: Any) -> Settings:
    """Return the settings with one place changed."""
    content: Any = value
    for name in reversed(at.split(".")):
        content = {name: content}
    return msgspec.convert(content, Settings)


def test_the_defaults_are_the_contract_s() -> None:
    """What nobody set is what the contract says."""
    settings = Settings()
    assert settings.defaults.policy == "weighted_least_conn"
    assert settings.defaults.timeout.total_ms == 60_000
    assert settings.defaults.retry.budget_percent == 20
    assert settings.defaults.circuit_breaker.consecutive_failures == 20
    assert settings.registry.capability_names == "shared"
    assert settings.registry.forget_after_ms == 600_000
    assert settings.probes.failures == 3
    assert settings.semantic.embedder == "none"
    assert settings_problems(settings) == ()


def test_only_what_differs_is_written() -> None:
    """A default said aloud is written like one left unsaid, so equal documents are equal bytes."""
    said = msgspec.json.decode(
        b'{"probes": {"interval_ms": 5000, "failures": 4}, "registry": {"forget_after_ms": 600000},'
        b' "defaults": {"retry": {"budget_percent": 20}}}',
        type=Settings,
    )
    assert said == Settings(probes=ProbeRules(failures=4))
    assert msgspec.json.encode(said) == b'{"probes":{"failures":4}}'


def test_an_unknown_setting_is_refused() -> None:
    """An older program never drops a setting it doesn't know."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"probes": {"intervall_ms": 5000}}', type=Settings)


@given(settings_documents)
def test_a_document_is_read_as_it_was_written(settings: Settings) -> None:
    """Writing and reading gives the same document and the same bytes."""
    encoded = msgspec.msgpack.encode(settings)
    read = msgspec.msgpack.decode(encoded, type=Settings)
    assert read == settings
    assert msgspec.msgpack.encode(read) == encoded


@pytest.mark.parametrize(("at", "least", "most"), BOUNDS)
def test_a_number_has_bounds(at: str, least: float, most: float) -> None:
    """Just outside its bounds a number is named; just inside it isn't."""
    for number in (least - 1, least, most, most + 1):
        outside = [
            problem.at
            for problem in settings_problems(document(at, number))
            if "isn't from" in problem.why
        ]
        assert outside == ([] if least <= number <= most else [at])


def test_not_a_number_is_out_of_bounds() -> None:
    """A float that compares with nothing doesn't slip through."""
    changed = Settings(semantic=SemanticRules(auto_route_threshold=math.nan))
    assert [problem.at for problem in settings_problems(changed)] == [
        "semantic.auto_route_threshold"
    ]


def test_suspicion_needs_more_than_a_heartbeat() -> None:
    """An instance that beats on time must never look silent."""
    changed = Settings(registry=RegistryRules(suspect_after_ms=3_000))
    assert [problem.at for problem in settings_problems(changed)] == ["registry.suspect_after_ms"]


def test_a_policy_must_exist() -> None:
    """What isn't there can't be chosen, and the message lists what can."""
    (problem,) = settings_problems(Settings(defaults=Defaults(policy="fastest")))
    assert problem.at == "defaults.policy"
    assert "least_load" in problem.why


@pytest.mark.parametrize("embedder", ["none", "local", "reach:vectors"])
def test_an_embedder_is_one_of_three_kinds(embedder: str) -> None:
    """None, the built-in one, or a reach by its name."""
    assert settings_problems(Settings(semantic=SemanticRules(embedder=embedder))) == ()


@pytest.mark.parametrize("embedder", ["", "remote", "reach:", "reach:\n"])
def test_any_other_embedder_is_refused(embedder: str) -> None:
    """A reach without a name is none."""
    changed = replace(Settings(), semantic=SemanticRules(embedder=embedder))
    assert [problem.at for problem in settings_problems(changed)] == ["semantic.embedder"]


def test_a_place_leads_to_its_value() -> None:
    """A dotted place reads like the file."""
    assert value_at(Settings(), "defaults.timeout.connect_ms") == 2_000
