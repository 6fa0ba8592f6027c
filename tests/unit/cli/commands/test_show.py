"""hotbed show."""

from __future__ import annotations

from hotbed.sdk.connect import connect
from hotbed.sdk.rollouts import rollout_once
from tests.unit.cli.conftest import Hotbed


def test_a_rollout_is_shown_whole(hotbed: Hotbed, node_socket: str) -> None:
    """What was asked and what was printed, found by the beginning of its id."""
    with connect(unix_socket=node_socket) as client:
        ran = rollout_once("python", command="echo out; echo err >&2", client=client)

    said = hotbed("show", ran.id[:-2])

    assert said.code == 0
    assert "echo out; echo err" in said.out
    assert said.out.index("--- stdout\nout") < said.out.index("--- stderr\nerr")


def test_an_unknown_id_is_an_answer(hotbed: Hotbed, node_socket: str) -> None:
    """With where to look."""
    said = hotbed("show", "rollout_nope")

    assert said.code != 0
    assert "hotbed rollouts" in said.err
