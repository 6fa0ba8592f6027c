"""One route: decode, handle, encode, and the boundary where failures are answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from hotbed.errors import TooLarge
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.node import Node
from hotbed.server.admission import admit
from hotbed.server.operation import Call, Operation, read_body
from hotbed.wire.routes import HEALTH
from tests.unit.node.nodes import running_node
from tests.unit.server.asking import Asked, ask, served
from tests.unit.server.keyed import doorway


def test_a_failure_in_a_handler_is_an_answer() -> None:
    """The connection lives on, and the node with it."""

    async def broken(node: Node, call: Call) -> Any:
        raise RuntimeError("bug")

    async def scenario() -> None:
        async with running_node() as node:
            answer = await ask(Operation(HEALTH, broken, node, admit=admit), "GET", "/")
            assert (answer.status, answer.json["code"]) == (500, "internal")

    asyncio.run(scenario())


def test_a_request_under_an_ended_lease_runs_nothing() -> None:
    """Its client is gone, as far as the node knows."""

    async def scenario() -> None:
        async with served() as (node, app):
            body = {"template": "python", "command": "true"}
            answer = await ask(app, "POST", "/v1/rollouts", body, headers={"X-Hotbed-Lease": "gone"})
            assert (answer.status, answer.json["code"]) == (410, "lease_gone")
            assert node.stats.counts["forks"] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("leased", [False, True])
def test_a_client_that_hangs_up_ends_its_rollout(leased: bool) -> None:
    """A task that was cancelled, a call whose time ran out: its client lives on, and so does its lease."""

    async def scenario() -> None:
        async with served() as (node, app):
            headers = {"x-hotbed-lease": node.leases.open().id} if leased else {}
            asked = Asked("POST", "/v1/rollouts", b'{"template":"python","command":"sleep 60"}', headers)
            running = asyncio.ensure_future(app(asked.scope, asked.receive, asked.send))
            while not node.inflight:
                await asyncio.sleep(0.01)
            asked.hang_up()
            await asyncio.wait_for(running, 5)
            assert asked.answer.status == 0
            assert node.inflight == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("headers", [{"content-length": "9"}, {}], ids=["announced", "chunked"])
def test_a_body_over_the_limit_is_refused_before_it_is_held(headers: dict[str, str]) -> None:
    """Whether or not its length was announced."""

    async def read(limit: int) -> bytes:
        asked = Asked("POST", "/", [b"abc", b"def", b"ghi"], headers)
        return await read_body(Request(asked.scope, asked.receive), limit)

    assert asyncio.run(read(9)) == b"abcdefghi"
    with pytest.raises(TooLarge):
        asyncio.run(read(8))


@pytest.mark.parametrize("header", [f"00-{'ab' * 16}-{'cd' * 8}-01", "nonsense", None])
def test_a_trace_is_passed_on_to_the_ledger(header: str | None, tmp_path: Path) -> None:
    """So that a slow step of a trainer's leads to the rollout it waited for."""

    async def scenario() -> None:
        async with served() as (node, app):
            node.ledger = Ledger(tmp_path)
            headers = {"traceparent": header} if header else {}
            body = {"template": "python", "code": "print(1)"}
            ran = await ask(app, "POST", "/v1/rollouts", body, headers=headers)
            kept = await ask(app, "GET", f"/v1/rollouts/{ran.json['id']}")

            traced = kept.json["details"].get("traceparent")
            assert ran.json["traceparent"] == (traced or "")
            assert traced == (header if header and header.startswith("00-") else None)

    asyncio.run(scenario())


def test_a_request_under_a_key_is_done_once(tmp_path: Path) -> None:
    """With its answer, byte for byte, for its tenant only; another request under it is refused."""

    async def run() -> None:
        async with doorway(tmp_path) as way:
            headers = {"idempotency-key": "k1"}
            body = {"template": "python"}
            first = await way.ask("acme", "POST", "/v1/sandboxes", body, **headers)
            second = await way.ask("acme", "POST", "/v1/sandboxes", body, **headers)
            assert (first.status, second.status) == (201, 201) and first.body == second.body
            path = f"/v1/sandboxes/{first.json['id']}/exec"
            append = {"command": "echo x >> f; wc -l < f"}
            counts = await asyncio.gather(*(way.ask("acme", "POST", path, append, **headers) for _ in range(3)))
            assert [answer.json["code"] for answer in counts] == ["key_reused"] * 3
            headers = {"idempotency-key": "k2"}
            counts = await asyncio.gather(*(way.ask("acme", "POST", path, append, **headers) for _ in range(3)))
            assert {answer.json["stdout"].strip() for answer in counts} == {"1"}
            other = await way.ask("bob", "POST", "/v1/sandboxes", body, **{"idempotency-key": "k1"})
            assert other.json["id"] != first.json["id"]
            streamed = await way.ask("acme", "POST", path, {**append, "stream": True}, **{"idempotency-key": "k3"})
            assert streamed.json["code"] == "invalid_request"
            bad = await way.ask("acme", "POST", path, append, **{"idempotency-key": "x" * 300})
            assert bad.json["code"] == "invalid_request"

    asyncio.run(run())
