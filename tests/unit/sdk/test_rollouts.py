"""One-shot runs, both faces."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from hotbed.errors import InvalidRequest, InvalidSeed, UnknownTemplate
from hotbed.sdk.client import Client
from hotbed.sdk.results import Result
from hotbed.sdk.rollouts import arollout_once, rollout_once

GIVEN: list[dict[str, Any]] = [
    {"code": "import sys; print(sys.argv[1:], open('f').read())", "args": ["a", "b"], "files": {"/work/f": "x"}},
    {"command": "cat; echo $NAME >&2; exit 3", "stdin": b"\xff", "env": {"NAME": "v"}},
    {"commands": [["false"], ["echo", "on"]], "keep_going": True},
    {"commands": [["false"], ["echo", "on"]]},
    {"code": "while True: pass", "timeout_seconds": 0.3},
]


def both(client: Client, **given: Any) -> tuple[Result, Result]:
    """The same rollout through both faces."""
    return (
        rollout_once("python", client=client, **given),
        asyncio.run(arollout_once("python", client=client, **given)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("given", GIVEN, ids=lambda given: str(next(iter(given.values())))[:24])
def test_both_faces_give_the_same(given: dict[str, Any], client: Client) -> None:
    """Whatever is run."""
    sync, asynchronous = both(client, **given)

    assert (sync.status, sync.exit_code, sync.output) == (
        asynchronous.status,
        asynchronous.exit_code,
        asynchronous.output,
    )


def test_program_that_fails_is_a_result(client: Client) -> None:
    """With everything about how it ended."""
    result = rollout_once("python", command="echo out; echo err >&2; exit 3", client=client)

    assert (result.ok, result.status, result.exit_code) == (False, "exit", 3)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert len(result.seed) == 64
    assert result.seed_ack == "off"


def test_seed_given_is_the_seed_reported(client: Client) -> None:
    """In its one form."""
    assert rollout_once("python", code="1", seed=7, client=client).seed == f"{7:064x}"


def test_output_is_heard_as_it_comes(client: Client) -> None:
    """And is in the result as well."""
    heard: list[tuple[int, bytes]] = []

    result = rollout_once(
        "python", command="echo a; echo b >&2", client=client, on_output=lambda *piece: heard.append(piece)
    )

    assert b"".join(data for stream, data in heard if stream == 1) == b"a\n"
    assert (result.stdout, result.stderr) == ("a\n", "b\n")


def test_mistakes_are_named_before_any_io() -> None:
    """No node is looked for."""
    with pytest.raises(InvalidRequest):
        rollout_once("python")
    with pytest.raises(InvalidSeed):
        rollout_once("python", code="1", seed="c0ffee")


def test_template_that_is_not_there_is_named(client: Client) -> None:
    """By the node."""
    with pytest.raises(UnknownTemplate, match="nope"):
        rollout_once("nope", code="1", client=client)


def test_both_faces_take_the_same_arguments() -> None:
    """A test keeps them alike."""
    assert inspect.signature(rollout_once) == inspect.signature(arollout_once)
