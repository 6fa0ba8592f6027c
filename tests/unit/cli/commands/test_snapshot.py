"""hotbed snapshot."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


def test_a_snapshot_is_taken_listed_and_freed(hotbed: Hotbed, node_socket: str) -> None:
    """By its id."""
    with connect(unix_socket=node_socket) as client, Sandbox("python", client=client) as sandbox:
        taken = hotbed("snapshot", sandbox.id).out.strip()
        assert hotbed("snapshot").out.splitlines()[1].split()[:3] == [taken, sandbox.id, "python"]
        assert hotbed("snapshot", "--json").json["snapshots"][0]["id"] == taken
        assert hotbed("snapshot", "--free", taken).code == 0
        assert hotbed("snapshot", "--json").json == {"snapshots": []}
        assert hotbed("snapshot", "--free", taken).code != 0  # it is not there
        last = hotbed("snapshot", sandbox.id, "--end").out.strip()
        assert client.sandboxes() == ()
        client.free_snapshot(last)


def test_two_requests_at_once_are_refused(hotbed: Hotbed) -> None:
    """One of them would be forgotten."""
    assert hotbed("snapshot", "a", "--free", "b").code == 2
