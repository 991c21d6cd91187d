"""Options that commands share."""

import argparse
from pathlib import Path

import pytest

from reachnode.cli.flags import add_config_flags, add_node_flags, api_of, config_of, file_text
from reachnode.model.config import ConfigError, NodeConfig, settings


def parsed(*argv: str) -> argparse.Namespace:
    """Return what a parser of configuration flags makes of arguments."""
    parser = argparse.ArgumentParser()
    add_config_flags(parser)
    return parser.parse_args(argv)


def test_every_setting_with_a_flag_can_be_said() -> None:
    """The flags are those of the settings, and what isn't said is the default."""
    assert config_of(parsed(), {}) == NodeConfig()
    flags = {one.flag for one in settings().values() if one.flag}
    assert {"--node-id", "--data-dir", "--listen", "--peer-listen", "--peers"} <= flags
    for flag in flags:
        parsed(flag, "x")


def test_flags_beat_environment_beats_file(tmp_path: Path) -> None:
    """All three sources meet in one configuration."""
    file = tmp_path / "node.yaml"
    file.write_text("node: {id: a, data_dir: a}\nobserve: {log_level: error}\n")
    args = parsed("--config", str(file), "--node-id", "c")
    config = config_of(args, {"REACHNODE_NODE__ID": "b", "REACHNODE_NODE__DATA_DIR": "b"})
    assert (config.id, config.data_dir, config.log_level) == ("c", "b", "error")


def test_an_observer_is_not_there_yet() -> None:
    """The flag of the future is refused rather than unknown."""
    with pytest.raises(ConfigError, match="not supported by this version yet"):
        config_of(parsed("--observer"), {})


def test_a_file_must_be_readable_text(tmp_path: Path) -> None:
    """What can't be read is named with the reason."""
    with pytest.raises(ConfigError, match="No such file"):
        file_text(str(tmp_path / "gone"))
    file = tmp_path / "file"
    file.write_bytes(b"node: \xff")
    with pytest.raises(ConfigError, match="no UTF-8 at byte 6"):
        file_text(str(file))
    file.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ConfigError, match="is over"):
        file_text(str(file))


def test_nodes_come_from_options_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options win; without either the node of this machine is asked."""
    parser = argparse.ArgumentParser()
    add_node_flags(parser)

    def asked(*argv: str) -> list[str]:
        return [node for node, _ in api_of(parser.parse_args(argv))._nodes]

    monkeypatch.delenv("REACHNODE_NODES", raising=False)
    assert asked() == ["http://127.0.0.1:7400"]
    monkeypatch.setenv("REACHNODE_NODES", "http://a:1, http://b:2,")
    assert asked() == ["http://a:1", "http://b:2"]
    assert asked("--node", "http://c:3", "--node", "d:4") == ["http://c:3", "d:4"]
