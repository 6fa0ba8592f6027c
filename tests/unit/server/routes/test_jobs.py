"""Jobs over HTTP, on the fake backend."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.server.asking import ask, make_sandbox, served
from tests.unit.server.keyed import doorway


def test_a_job_from_start_to_deletion() -> None:
    """Output by offset, the result at its end, gone after that."""

    async def run() -> None:
        async with served() as (_, app):
            base = f"/v1/sandboxes/{await make_sandbox(app)}/jobs"
            started = await ask(app, "POST", base, {"command": "echo one; read x", "stdin": "x"})
            assert started.status == 201
            one = f"{base}/{started.json['id']}"
            output = (await ask(app, "GET", f"{one}/output?wait_s=5")).json
            assert [event["data"] for event in output["events"]] == ["one\n"] and output["next"] == 4
            row = (await ask(app, "GET", f"{one}?wait_s=5")).json
            assert (row["state"], row["output_total"], row["result"]["stdout"]) == ("ended", 4, "one\n")
            assert (await ask(app, "POST", f"{one}/signal", {"signal": 15})).status == 200
            assert [job["id"] for job in (await ask(app, "GET", base)).json["jobs"]] == [row["id"]]
            for _ in range(2):
                assert (await ask(app, "DELETE", one)).json["deleted"]
            assert (await ask(app, "GET", one)).status == 404

    asyncio.run(run())


@pytest.mark.parametrize("query", ["since=-1", "since=x", "wait_s=nan", "since=1e400"])
def test_what_is_no_offset_is_refused(query: str) -> None:
    """By name."""

    async def run() -> int:
        async with served() as (_, app):
            base = f"/v1/sandboxes/{await make_sandbox(app)}/jobs"
            job = (await ask(app, "POST", base, {"command": "true"})).json["id"]
            return (await ask(app, "GET", f"{base}/{job}/output?{query}")).status

    assert asyncio.run(run()) == 400


def test_another_tenants_jobs_do_not_exist(tmp_path: Path) -> None:
    """Their sandbox does not."""

    async def run() -> int:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json
            return (await way.ask("bob", "GET", f"/v1/sandboxes/{made['id']}/jobs")).status

    assert asyncio.run(run()) == 404
