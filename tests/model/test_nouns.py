"""What every noun that crosses the wire must keep to."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from reachnode.model.agents import Instance
from reachnode.model.members import Member
from reachnode.model.nouns import Noun
from reachnode.model.settings import Section
from reachnode.registry import snapshot  # noqa: F401 - it defines the last of the nouns

EMPTY: tuple[Any, ...] = (None, True, False, "", ())


def below(noun: type[Noun]) -> Iterator[type[Noun]]:
    """Yield every kind of a noun."""
    for one in noun.__subclasses__():
        yield one
        yield from below(one)


NOUNS = sorted(below(Noun), key=str)


@pytest.mark.parametrize("noun", NOUNS)
def test_a_default_is_one_object(noun: type[Noun]) -> None:
    """Defaults are left out by identity, so each must be the only object of its value.

    Sections of the settings see to it themselves.
    """
    if issubclass(noun, Section):
        return
    for field in msgspec.structs.fields(noun):
        is_single = any(field.default is one for one in EMPTY) or field.default in range(257)
        assert field.default is msgspec.NODEFAULT or is_single, field.name


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_is_frozen_and_strict(noun: type[Noun]) -> None:
    """It never changes, leaves defaults out and refuses what it doesn't know."""
    config = noun.__struct_config__
    assert config.frozen
    assert config.omit_defaults
    assert config.forbid_unknown_fields
    assert not config.gc


def test_equal_nouns_are_equal_bytes() -> None:
    """A value that was read is written like one that was left out."""
    said = msgspec.json.decode(
        b'{"agent_id": "a1", "agent": "a1", "name": "", "capabilities": [], "incarnation": 0,'
        b' "metadata": {"zone": "", "tags": []}, "health": null, "direct_fallback": false}',
        type=Instance,
    )
    unsaid = Instance(agent_id="a1", agent="a1")
    assert said == unsaid
    assert msgspec.msgpack.encode(said) == msgspec.msgpack.encode(unsaid)


def test_a_field_of_the_future_is_refused() -> None:
    """An older program says that it can't read a record, rather than lose a part of it."""
    with pytest.raises(msgspec.ValidationError, match="unknown field `region`"):
        msgspec.json.decode(
            b'{"member_id": "n1", "incarnation": "d", "admitted_index": 1, "region": "eu"}',
            type=Member,
        )
