"""hotbed rollouts."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.rollouts import rollout_once
from tests.unit.cli.conftest import Hotbed


def test_what_ran_is_listed_newest_first(hotbed: Hotbed, node_socket: str) -> None:
    """And narrowed by what one knows of it."""
    with connect(unix_socket=node_socket) as client:
        ids = [rollout_once("python", command=f"exit {n}", client=client).id for n in range(2)]

    listed, failed = hotbed("rollouts", "--limit", "2"), hotbed("rollouts", "--status", "exit", "--json").json

    assert [line.split()[0] for line in listed.out.splitlines()] == ["ID", ids[1], ids[0]]
    assert failed["rollouts"][0]["id"] == ids[1]
    assert "more with --before" in listed.err
