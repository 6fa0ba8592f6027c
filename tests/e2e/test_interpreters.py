"""`code` in other languages than Python, in real sandboxes: warm where it can be, pinned where it is to be."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from hotbed import Client, connect, rollout_once
from hotbed.errors import BakeFailed, InvalidRequest
from hotbed.sdk.template import Template


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a node of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOTBED_HOME", str(tmp_path_factory.mktemp("home")))
        with connect() as made:
            yield made


def ran(client: Client, template: str, code: str, **fields: Any) -> Any:
    """The result of a program."""
    return rollout_once(template, code=code, client=client, **fields)


def warm(client: Client, template: str, code: str) -> Any:
    """The result of a program that was waited for. A spare is parked after the first request, sooner or later."""
    for _ in range(1000):
        result = ran(client, template, code)
        if result.warm_hit:
            return result
    raise AssertionError("never")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "draw"), [("bash", "echo $$ $(od -An -N8 -tx8 /dev/urandom)"), ("node", "console.log(Math.random())")]
)
def test_a_seeded_program_is_pinned_and_never_one_that_waited(client: Client, template: str, draw: str) -> None:
    """What waits has drawn already, and has numbers of its own."""
    if shutil.which(template) is None:
        pytest.skip(f"no {template}")
    unseeded = {warm(client, template, draw).stdout for _ in range(2)}
    seeded = [ran(client, template, draw, seed=5) for _ in range(2)]

    assert len(unseeded) == 2
    assert seeded[0].stdout == seeded[1].stdout
    assert {(one.seed_ack, one.warm_hit) for one in seeded} == {("verified", False)}


def test_what_is_asked_for_beyond_a_program_is_had(client: Client) -> None:
    """By a process that was started for it."""
    result = ran(client, "bash", 'read -r x; echo "$x $1 $A"', stdin="in\n", args=["arg"], env={"A": "env"})

    assert (result.stdout, result.warm_hit) == ("in arg env\n", False)


def test_a_command_that_is_no_interpreter_fails_the_bake(client: Client) -> None:
    """With what it said; and one that takes no file refuses a stdin, rather than mix them up."""
    with pytest.raises(BakeFailed, match="127.*not found"):
        Template.bake(client, name="none", warm_cmd="no-such-interpreter -")
    Template.bake(client, name="own", warm_cmd="sh -c 'eval \"$(cat)\"' sh")
    assert ran(client, "own", "echo hi $1", args=["you"]).stdout == "hi you\n"
    with pytest.raises(InvalidRequest, match="stdin"):
        ran(client, "own", "cat", stdin="x")
