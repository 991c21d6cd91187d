"""Reading flags, environment and file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.address import Address
from reachnode.model.config import ConfigError, NodeConfig
from reachnode.wire.configuration import FIELDS, read_config

FILE = """\
node: {id: n2, listen: "127.0.0.1:7500", drain_seconds: 5}
cluster:
  peers: {n1: 127.0.0.1:7401, n2: 127.0.0.1:7402}
  secret_file: /s
security:
  auth: off
  insecure: yes
observe:
"""


def read(text: str | None = None, **said: dict[str, str]) -> NodeConfig:
    return read_config(
        flags=said.get("flags", {}),
        environment=said.get("environment", {}),
        file_text=text,
        file_name="node.yaml",
    )


def test_nothing_said_means_the_defaults() -> None:
    """No source, an empty file and a file of comments are all fine."""
    assert read() == read("") == read("# nothing\n") == read("node:\n  id:\n") == NodeConfig()


def test_a_file_is_read() -> None:
    """Every kind of value is understood, and `off` stays a word."""
    config = read(FILE)
    assert config.id == "n2"
    assert config.listen == Address("127.0.0.1", 7500)
    assert config.drain_seconds == 5.0
    assert dict(config.peers) == {
        "n1": Address("127.0.0.1", 7401),
        "n2": Address("127.0.0.1", 7402),
    }
    assert config.auth == "off"
    assert config.insecure is True
    assert config.log_level == "info"


def test_a_flag_beats_the_environment_which_beats_the_file() -> None:
    """The order of precedence is flag, environment, file, default."""
    environment = {
        "REACHNODE_NODE__ID": "n1",
        "REACHNODE_OBSERVE__LOG_LEVEL": "debug",
        "REACHNODE_NODES": "http://elsewhere",
        "PATH": "/bin",
    }
    config = read(FILE, environment=environment)
    assert (config.id, config.log_level) == ("n1", "debug")
    config = read(FILE, environment=environment, flags={"node.id": "n2"})
    assert config.id == "n2"


def test_a_whole_number_is_read_from_a_variable() -> None:
    """A setting without a flag has its variable."""
    config = read(environment={"REACHNODE_CLUSTER__SNAPSHOT_ENTRIES": "200"})
    assert config.snapshot_entries == 200


def test_peers_are_read_as_the_flag_writes_them() -> None:
    """`n1=HOST:PORT,n2=HOST:PORT` is the same as the mapping of the file."""
    config = read(
        flags={
            "cluster.peers": "n1=127.0.0.1:1, n2=[::1]:2,",
            "cluster.secret_file": "/s",
        }
    )
    assert dict(config.peers) == {"n1": Address("127.0.0.1", 1), "n2": Address("::1", 2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: {}", "node.yaml line 1: nodes: is unknown; did you mean node?"),
        ("\n\nxyzzy: {}", "node.yaml line 3: xyzzy: is unknown; known: cluster, node,"),
        ("node:\n  datadir: x", "line 2: node.datadir: is unknown; did you mean node.data_dir?"),
        ("node:\n  id: n1\n  id: n2", "node.yaml line 3: id: is said twice"),
        ("node: n1", "node.yaml line 1: node: must be keys with values"),
        ("- a", "node.yaml line 1: file: must be keys with values"),
        ("? [a]\n: b", "its keys must be plain words"),
        ("node: {id: [a]}", "node.id: must be keys with values"),
        ("node: {id: {a: b}}", "node.id: must be one value, not keys with values"),
        ("cluster: {peers: {n1: [a]}}", "cluster.peers.n1: must be one value"),
        ("cluster: {peers: {n1: nowhere}}", "has no port"),
        ("node:\n  listen: here", "node.yaml line 2: node.listen: "),
        ("node: {id: ''}", "node.id: must not be empty"),
        ("node: {drain_seconds: soon}", "'soon' is not a number"),
        ("node: {drain_seconds: .nan}", "'.nan' is not a number"),
        ("node: {drain_seconds: inf}", "'inf' is not a finite number"),
        ("cluster: {snapshot_entries: 1.5}", "'1.5' is not a whole number"),
        ("security: {insecure: maybe}", "'maybe' must be true or false"),
        ("observe: {log_level: loud}", "'loud' must be debug or info or warning or error"),
        ("node: [", "node.yaml line 1: file: is no YAML"),
        ("node: \x00", "node.yaml: file: is no YAML"),
        ("a: b\n---\nc: d", "is no YAML"),
        ("[" * 5000, "is no YAML"),
        ("node:\n  id: n9\ncluster: {peers: {n1: 'h:1'}}", "line 2: node.id: n9 is not among"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(text: str, message: str) -> None:
    """What is wrong, where, and the closest known key are in the error."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "policies: []",
        "defaults: {policy: scored}",
        "security: {tls: {cert: a}}",
        "security: {auth: required}",
        "observe: {otlp_endpoint: x}",
        "node: {observer: true}",
    ],
)
def test_a_setting_that_is_not_enforced_yet_is_refused(text: str) -> None:
    """Nothing is silently weaker: no setting is read and ignored."""
    with pytest.raises(ConfigError, match="is not supported by this version yet"):
        read(text)


def test_a_wrong_variable_or_flag_is_named() -> None:
    """The error says which variable or flag to correct."""
    with pytest.raises(ConfigError, match=r"REACHNODE_NODE__DATADIR: .*mean node.data_dir"):
        read(environment={"REACHNODE_NODE__DATADIR": "x"})
    with pytest.raises(ConfigError, match=r"^--listen: node.listen"):
        read(flags={"node.listen": "x"})
    with pytest.raises(ConfigError, match="appears twice"):
        read(flags={"cluster.peers": "n1=h:1,n1=h:2"})
    with pytest.raises(ConfigError, match="is not ID=HOST:PORT"):
        read(flags={"cluster.peers": "h:1"})


def test_no_is_no() -> None:
    """A boolean may be said as YAML does."""
    assert read("security: {insecure: no}").insecure is False


KEYS = st.sampled_from([*FIELDS, "policies", "node", "x"])


@given(st.recursive(st.text(max_size=8), lambda inner: st.dictionaries(KEYS, inner, max_size=3)))
def test_any_file_gives_a_configuration_or_a_config_error(document: object) -> None:
    """No text of a file raises anything but the error that names its place."""
    try:
        read(repr(document))
    except ConfigError:
        return


@given(st.text(max_size=60))
def test_any_text_gives_a_configuration_or_a_config_error(text: str) -> None:
    """Neither does text that isn't YAML at all."""
    try:
        read(text)
    except ConfigError:
        return
