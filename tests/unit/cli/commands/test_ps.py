"""hotbed ps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.cli.commands.ps import span
from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


def test_live_sandboxes_are_listed(hotbed: Hotbed, node_socket: str) -> None:
    """With their labels."""
    with connect(unix_socket=node_socket) as client, Sandbox("python", client=client, label="mine") as sandbox:
        listed, data = hotbed("ps"), hotbed("ps", "--json").json

    head, row = listed.out.splitlines()
    assert head.split()[:2] == ["ID", "TEMPLATE"]
    assert row.split()[:2] == [data["sandboxes"][0]["id"], sandbox.template]
    assert row.endswith("mine")
    assert data["node"]["status"] == "ok"


def test_no_node_is_no_sandbox(hotbed: Hotbed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And none is started to find that out."""
    monkeypatch.delenv("HOTBED_URL")
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path))

    said = hotbed("ps", "--json")

    assert (said.code, said.json) == (0, {"node": None, "sandboxes": [], "pools": []})
    assert "no node is running" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (200000, "2d")])
def test_spans_are_short(seconds: float, text: str) -> None:
    """One unit says enough."""
    assert span(seconds) == text
