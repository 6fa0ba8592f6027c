"""hotbed replay."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.rollouts import rollout_once
from tests.unit.cli.conftest import Hotbed


def test_the_exit_code_says_whether_it_came_out_the_same(hotbed: Hotbed, node_socket: str) -> None:
    """0 identical, 1 not, with the byte and the likely source."""
    with connect(unix_socket=node_socket) as client:
        same = rollout_once("python", command="echo same", client=client)
        clock = rollout_once("python", command="date +%s%N", client=client)

    identical, differs = hotbed("replay", same.id), hotbed("replay", clock.id)

    assert (identical.code, differs.code) == (0, 1)
    assert "identical" in identical.out
    assert "stdout at byte" in differs.out
    assert "likely clock" in differs.out
    assert hotbed("replay", same.id, "--json").json["identical"] is True
