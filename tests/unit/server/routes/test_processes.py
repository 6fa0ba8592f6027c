"""The socket of a process, over the fake backend."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hotbed.wire.processes import INPUT_WINDOW
from tests.unit.server.asking import make_sandbox, served
from tests.unit.server.keyed import doorway
from tests.unit.server.socketing import OpenSocket


def path(sandbox_id: str) -> str:
    """Where its processes are."""
    return f"/v1/sandboxes/{sandbox_id}/process"


def test_a_conversation_from_the_request_to_the_result() -> None:
    """Started, heard, taken, ended."""

    async def run() -> None:
        async with served() as (node, app):
            socket = OpenSocket(app, path(await make_sandbox(app)))
            assert await socket.hear() == "accept"
            socket.say({"command": "read x; echo got $x; cat >&2"})
            assert await socket.hear() == {"event": "started"}
            socket.say(b"one\n")
            heard = [await socket.hear(), await socket.hear()]
            assert {"event": "taken", "bytes": 4} in heard and b"\1got one\n" in heard
            socket.say(b"rest")
            socket.say({"op": "end_input"})
            heard = [await socket.hear() for _ in range(3)]
            assert b"\2rest" in heard
            assert (heard[-1]["event"], heard[-1]["result"]["ok"]) == ("result", True)
            assert await socket.hear() == "close"
            await socket.done()
            assert node.inflight == 0

    asyncio.run(run())


def test_hanging_up_ends_the_program() -> None:
    """And leaves the sandbox."""

    async def run() -> None:
        async with served() as (node, app):
            name = await make_sandbox(app)
            socket = OpenSocket(app, path(name))
            socket.say({"command": "sleep 60"})
            assert [await socket.hear(), await socket.hear()] == ["accept", {"event": "started"}]
            assert node.inflight == 1
            socket.hang_up()
            await socket.done()

            assert node.inflight == 0
            assert node.sessions.get(name).active == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"command": "true", "terminal": {"rows": 0, "columns": 1}}, None),
        ("no json", None),
        ({}, None),
        ({"command": "sleep 60"}, "no json"),
        ({"command": "sleep 60"}, {"op": "nonsense"}),
        ({"command": "sleep 60"}, {"op": "signal"}),
        ({"command": "sleep 60"}, bytes(2 * INPUT_WINDOW + 1)),
    ],
)
def test_what_makes_no_sense_ends_it_with_an_error(first: Any, then: Any) -> None:
    """Also what is said too late or too much."""

    async def run() -> dict[str, Any]:
        async with served() as (node, app):
            socket = OpenSocket(app, path(await make_sandbox(app)))
            socket.say(first)
            if then is not None:
                socket.say(then)
            while not isinstance(told := await socket.hear(), dict) or told["event"] != "error":
                pass
            await socket.done()
            assert node.inflight == 0
            return dict(told["error"])

    assert asyncio.run(run())["code"] == "invalid_request"


def test_only_who_may_run_in_it_is_let_in(tmp_path: Path) -> None:
    """By key, by scope, by tenant."""

    async def run() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json
            reader = way.add_key("acme", scopes=("read",))
            for key, expected in (
                ("", (401, "unauthorized")),
                ("nonsense", (401, "unauthorized")),
                (reader, (403, "forbidden")),
                (way.keys["bob"], (404, "not_found")),
            ):
                headers = {"authorization": f"Bearer {key}"} if key else {}
                assert await OpenSocket(way.door, path(made["id"]), headers).refusal() == expected
                assert await OpenSocket(way.door, path(made["id"]) + "?t=x", headers).refusal() == expected
            socket = OpenSocket(way.door, path(made["id"]), {"authorization": f"Bearer {way.keys['acme']}"})
            socket.say({"command": "echo mine"})
            assert await socket.hear() == "accept"
            while await socket.hear() != "close":
                pass

    asyncio.run(run())
