"""hotbed suspend."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


def test_a_sandbox_is_held_still_and_goes_on(hotbed: Hotbed, node_socket: str) -> None:
    """And `ps` shows which."""
    with connect(unix_socket=node_socket) as client, Sandbox("python", client=client) as sandbox:
        assert hotbed("suspend", sandbox.id).err.startswith("hotbed: suspended by ")
        assert hotbed("ps", "--json").json["sandboxes"][0]["state"] == "suspended"
        assert hotbed("suspend", sandbox.id, "--resume", "--json").json["state"] == "running"
        assert sandbox.exec("print(1)").ok
