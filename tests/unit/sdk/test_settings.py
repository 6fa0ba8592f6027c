"""The environment."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hotbed.sdk.settings import Settings, child_environment
from hotbed.wire.places import runtime_dir


def test_environment_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable counts as unset."""
    monkeypatch.setenv("HOTBED_URL", "http://x")
    monkeypatch.setenv("HOTBED_API_KEY", "")
    monkeypatch.setenv("NO_COLOR", "1")

    read = Settings.from_environment()

    assert (read.url, read.api_key, read.no_color) == ("http://x", None, True)


def test_node_lives_in_the_runtime_directory() -> None:
    """Ours, else the session's, else one in /tmp with our uid."""
    assert Settings(runtime_dir="/a", xdg_runtime_dir="/b").node_socket == "/a/node.sock"
    assert Settings(xdg_runtime_dir="/b").node_socket == "/b/hotbed/node.sock"
    assert Settings().node_socket == runtime_dir(None) + "/node.sock"


def test_embedded_node_inherits_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings come from there."""
    monkeypatch.setenv("HOTBED_MAX_SANDBOXES", "7")

    assert child_environment()["HOTBED_MAX_SANDBOXES"] == "7"


@pytest.mark.parametrize(("module", "prefix"), [("collimate_rl", "COLLIMATE"), ("boltzlabs", "BOLTZLABS")])
def test_an_alias_brings_its_variables(monkeypatch: pytest.MonkeyPatch, module: str, prefix: str) -> None:
    """Ours come first, and the published package of the same name brings nothing: its key is for somebody else."""
    for name in ("HOTBED_URL", "HOTBED_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{prefix}_BASE_URL", "http://theirs")
    monkeypatch.setenv(f"{prefix}_API_KEY", "key")
    for other in ("collimate_rl", "boltzlabs"):
        monkeypatch.delitem(sys.modules, other, raising=False)
    published, alias = ModuleType(module), ModuleType(module)
    setattr(alias, "HOTBED_ALIAS", True)  # noqa: B010  the attribute is not one that the type declares

    monkeypatch.setitem(sys.modules, module, published)
    assert (Settings.from_environment().url, Settings.from_environment().api_key) == (None, None)

    monkeypatch.setitem(sys.modules, module, alias)
    assert (Settings.from_environment().url, Settings.from_environment().api_key) == ("http://theirs", "key")

    monkeypatch.setenv("HOTBED_API_KEY", "ours")
    assert Settings.from_environment().api_key == "ours"
