"""What a node's settings are called, and which of them contradict."""

from typing import Any

import pytest
from immutables import Map

from reachnode.model.address import Address
from reachnode.model.config import (
    ConfigError,
    NodeConfig,
    is_loopback,
    is_wildcard,
    settings,
)

THREE = Map({f"n{one}": Address(f"10.0.0.{one}", 7401) for one in (1, 2, 3)})
LOOPBACK = Map({f"n{one}": Address("127.0.0.1", 7400 + one) for one in (1, 2, 3)})


def test_without_options_a_node_is_a_cluster_of_one_on_loopback() -> None:
    """`reachnode serve` alone needs nothing, and nobody else can reach it."""
    config = NodeConfig()
    assert str(config.listen) == "127.0.0.1:7400"
    assert str(config.peer_bind) == "127.0.0.1:7401"
    assert dict(config.voters) == {"n1": Address("127.0.0.1", 7401)}
    assert config.warnings == ()


def test_every_setting_has_a_key_a_variable_and_a_help_text() -> None:
    """No setting can be added without being documented and reachable everywhere."""
    known = settings()
    assert set(known) == set(NodeConfig.__dataclass_fields__)
    assert known["data_dir"].key == "node.data_dir"
    assert known["data_dir"].flag == "--data-dir"
    assert known["data_dir"].variable == "REACHNODE_NODE__DATA_DIR"
    assert all(one.help.endswith(".") or one.help[-1].isdigit() for one in known.values())
    assert len({one.key for one in known.values()}) == len(known)


def test_a_voter_listens_where_the_others_look_for_it() -> None:
    """The peer port needs no second setting where the list of peers says it."""
    config = NodeConfig(id="n2", peers=THREE, secret_file="s")
    assert config.peer_bind == Address("10.0.0.2", 7401)
    assert config.voters == THREE
    elsewhere = NodeConfig(peers=THREE, secret_file="s", peer_listen=Address("::", 1))
    assert elsewhere.peer_bind == Address("::", 1)


def test_a_cluster_of_one_is_found_where_it_says() -> None:
    """A node alone may advertise another address than it listens on."""
    config = NodeConfig(peer_advertise=Address("10.0.0.1", 7401))
    assert dict(config.voters) == {"n1": Address("10.0.0.1", 7401)}


@pytest.mark.parametrize(
    ("key", "why", "values"),
    [
        ("node.id", "must match", {"id": "a b"}),
        ("node.id", "must match", {"id": ""}),
        ("node.id", "not among cluster.peers .n1, n2, n3.", {"id": "n4", "peers": LOOPBACK}),
        ("node.drain_seconds", "between 0 and 3600", {"drain_seconds": -1.0}),
        ("cluster.time_scale", "between 0.1 and 100", {"time_scale": 0.0}),
        ("cluster.snapshot_entries", "between 10 and 1000000", {"snapshot_entries": 9}),
        ("cluster.secret_file", "cluster secret", {"peers": LOOPBACK}),
        ("cluster.peers", "must match", {"peers": Map({"n 1": Address("h", 1)})}),
        ("cluster.peers", "no address to", {"peers": Map({"n1": Address("::", 1)})}),
        ("cluster.peers", "no address to", {"peers": Map({"n1": Address("h", 0)})}),
        (
            "cluster.peers",
            "n1 and n2 both have",
            {"peers": Map({"n1": Address("h", 1), "n2": Address("h", 1)})},
        ),
        ("node.peer_listen", "also node.listen", {"peer_listen": Address("127.0.0.1", 7400)}),
        ("node.listen", "beyond loopback", {"listen": Address("::", 7400)}),
        ("node.listen", "beyond loopback", {"listen": Address("some.name", 7400)}),
        ("node.advertise", "no address to", {"advertise": Address("::", 1)}),
        ("node.advertise", "no address to", {"advertise": Address("h", 0)}),
        (
            "node.advertise",
            "another machine",
            {
                "advertise": Address("127.0.0.1", 1),
                "listen": Address("10.0.0.1", 1),
                "insecure": True,
            },
        ),
        (
            "node.peer_advertise",
            "another machine",
            {"peer_advertise": Address("::1", 1), "peer_listen": Address("10.0.0.1", 1)},
        ),
        (
            "node.peer_advertise",
            "differs from 127.0.0.1:7401",
            {"peers": LOOPBACK, "secret_file": "s", "peer_advertise": Address("127.0.0.1", 9)},
        ),
    ],
)
def test_a_contradiction_names_its_key_and_a_way_out(
    key: str, why: str, values: dict[str, Any]
) -> None:
    """Settings that can't work together are refused before anything starts."""
    with pytest.raises(ConfigError, match=why) as caught:
        NodeConfig(**values)
    assert caught.value.key == key


def test_free_ports_do_not_collide() -> None:
    """Both ports may be 0: the system picks two."""
    free = Address("127.0.0.1", 0)
    assert NodeConfig(listen=free, peer_listen=free).peer_bind == free


def test_what_is_unwise_warns() -> None:
    """An even number of voters, an unreachable peer port and open doors are said aloud."""
    two = Map({one: THREE[one] for one in ("n1", "n2")})
    warnings = NodeConfig(
        peers=two,
        secret_file="s",
        insecure=True,
        listen=Address("::", 7400),
        peer_listen=Address("127.0.0.1", 7401),
        advertise=Address("10.0.0.1", 7400),
    ).warnings
    assert [one.partition(":")[0] for one in warnings] == [
        "cluster.peers",
        "node.peer_listen",
        "security.insecure",
    ]
    assert NodeConfig(peers=THREE, secret_file="s").warnings == ()


def test_an_error_says_where_the_setting_was_said() -> None:
    """File and line stand before the key, where they are known."""
    assert str(ConfigError(key="node.id", why="no", place="f line 3")) == "f line 3: node.id: no"
    assert str(ConfigError(key="node.id", why="no")) == "node.id: no"


@pytest.mark.parametrize(
    ("host", "loopback", "wildcard"),
    [
        ("127.0.0.1", True, False),
        ("127.8.8.8", True, False),
        ("::1", True, False),
        ("localhost", True, False),
        ("0.0.0.0", False, True),  # noqa: S104 - nothing is bound here
        ("::", False, True),
        ("10.0.0.1", False, False),
        ("localhost.example", False, False),
    ],
)
def test_who_can_reach_an_address(host: str, loopback: bool, wildcard: bool) -> None:
    """Only addresses that surely stay on the machine count as loopback."""
    assert is_loopback(Address(host, 1)) is loopback
    assert is_wildcard(Address(host, 1)) is wildcard
