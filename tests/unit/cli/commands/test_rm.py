"""Ending sandboxes from the command line."""

from __future__ import annotations

import pytest

from hotbed.cli.main import USAGE
from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


def test_those_that_are_named_are_ended(hotbed: Hotbed, node_socket: str) -> None:
    """And printed; when there is none, the answer is no."""
    with connect(unix_socket=node_socket) as client:
        made = [Sandbox("python", client=client, group="g", labels={"k": str(number)}) for number in range(3)]
        for sandbox in made:
            sandbox.start()
        ids = [sandbox.id for sandbox in made]

        assert hotbed("rm", "--group", "g", "--label", "k=1").out.split() == [ids[1]]
        assert hotbed("rm", ids[0], "--json").json == {"ended": [ids[0]]}
        assert hotbed("rm", ids[0]).code == 1
        assert hotbed("rm", "--lease", client.link.hold().id).code == 0


@pytest.mark.parametrize("words", [["rm"], ["rm", "--label", "x"]])
def test_nothing_said_ends_nothing(hotbed: Hotbed, words: list[str]) -> None:
    """It was asked wrongly."""
    said = hotbed(*words)

    assert said.code == USAGE and "hint" in said.err
