"""Running things over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.server.asking import ask, make_sandbox, served


def test_a_rollout_and_an_exec_answer_alike() -> None:
    """One shape for what happened."""

    async def scenario() -> None:
        async with served() as (_, app):
            rolled = await ask(app, "POST", "/v1/rollouts", {"template": "python", "command": "echo a; exit 3"})
            name = await make_sandbox(app)
            run = await ask(app, "POST", f"/v1/sandboxes/{name}/exec", {"command": "echo a; exit 3"})
            for answer in (rolled, run):
                assert answer.status == 200
                assert (answer.json["stdout"], answer.json["exit_code"], answer.json["status"]) == ("a\n", 3, "exit")
                assert answer.json["seed_ack"] == "off"

    asyncio.run(scenario())


def test_both_can_be_streamed() -> None:
    """Output as it happens, the answer last."""

    async def scenario() -> None:
        async with served() as (_, app):
            body = {"command": "echo a", "stream": True}
            name = await make_sandbox(app)
            for url, more in (("/v1/rollouts", {"template": "python"}), (f"/v1/sandboxes/{name}/exec", {})):
                lines = (await ask(app, "POST", url, {**body, **more})).lines
                assert [line["event"] for line in lines] == ["output", "result"]
                assert lines[-1]["result"]["stdout"] == lines[0]["data"] == "a\n"

    asyncio.run(scenario())


BAD: list[tuple[Any, int, str]] = [
    ({"template": "python"}, 400, "invalid_request"),
    ({"template": "python", "code": "1", "command": "true"}, 400, "invalid_request"),
    ({"template": "nope", "code": "1"}, 404, "unknown_template"),
    ({"template": "python", "code": "1", "timeout_seconds": -1}, 400, "invalid_request"),
    ({"template": "python", "code": "1", "seed": "beef"}, 400, "invalid_seed"),
    ({"template": "python", "code": "1", "files": [{"path": "a", "content": ""}]}, 400, "bad_path"),
    ({"template": "python", "commands": [["echo", "x" * 200_000]]}, 400, "invalid_request"),
    ({"template": "python", "code": "1", "limits": {"pids": 0}}, 400, "invalid_request"),
    ({"template": "python", "code": "1", "min_isolation": "fork"}, 503, "isolation_unavailable"),
    ({"template": "python", "code": "1", "min_isolation": "moat"}, 400, "invalid_request"),
    (b"\x00\xff\xfe", 400, "invalid_request"),
    (b"[]", 400, "invalid_request"),
]


@pytest.mark.parametrize(("body", "status", "code"), BAD)
def test_a_bad_request_is_refused_with_a_code_and_runs_nothing(body: Any, status: int, code: str) -> None:
    """Every one with a message; none leaks a sandbox."""

    async def scenario() -> None:
        async with served() as (node, app):
            answer = await ask(app, "POST", "/v1/rollouts", body)
            assert (answer.status, answer.json["code"]) == (status, code)
            assert answer.json["message"]
            assert node.stats.counts["forks"] == 0

    asyncio.run(scenario())


def test_an_exec_in_a_sandbox_that_has_ended_is_gone() -> None:
    """Also while one runs there."""

    async def scenario() -> None:
        async with served() as (node, app):
            name = await make_sandbox(app)
            url = f"/v1/sandboxes/{name}/exec"
            running = asyncio.ensure_future(ask(app, "POST", url, {"command": "sleep 60"}))
            while not node.inflight:
                await asyncio.sleep(0.01)
            await ask(app, "DELETE", f"/v1/sandboxes/{name}")
            assert (await running).status == 410
            assert (await ask(app, "POST", url, {"command": "true"})).status == 410

    asyncio.run(scenario())
