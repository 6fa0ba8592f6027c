"""hotbed usage."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.rollouts import rollout_once
from tests.unit.cli.conftest import Hotbed


def test_what_was_used_is_shown_by_tenant(hotbed: Hotbed, node_socket: str) -> None:
    """The node's own user has no name."""
    with connect(unix_socket=node_socket) as client:
        rollout_once("python", command="true", client=client)

    shown, told = hotbed("usage"), hotbed("usage", "--json").json

    assert shown.out.splitlines()[0].split()[:3] == ["TENANT", "SANDBOX-S", "CPU-S"]
    assert shown.out.splitlines()[1].startswith("-")
    assert told["tenants"][0]["rollouts"] >= 1
    assert hotbed("usage", "--since", "yesterday").code == 2
