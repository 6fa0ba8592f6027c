"""hotbed fork."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


def test_the_childrens_ids_are_printed(hotbed: Hotbed, node_socket: str) -> None:
    """They live under the parent's client, and end with it."""
    with connect(unix_socket=node_socket) as client, Sandbox("python", client=client) as parent:
        said, data = hotbed("fork", parent.id, "-n", "2"), hotbed("fork", parent.id, "--json", "--seed-mode", "crn")

        assert set(said.out.split()) < {row.id for row in client.sandboxes()}
        assert len(said.out.split()) == 2 and "2 in" in said.err
        assert data.json["parent"] == parent.id and len(data.json["children"]) == 1


def test_an_unknown_sandbox_is_an_error(hotbed: Hotbed) -> None:
    """Of the node."""
    assert hotbed("fork", "none").code == 3
