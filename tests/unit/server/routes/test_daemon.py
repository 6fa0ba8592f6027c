"""The published daemon's wire, over the fake backend. tests/interop has the real client."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.server.asking import ask, served
from tests.unit.server.keyed import doorway


def test_a_session_from_creation_to_deletion() -> None:
    """An id that ended is unknown, in the body that the client hides."""

    async def scenario() -> None:
        async with served() as (_, app):
            made = await ask(app, "POST", "/v1/sessions", {"template_id": "py"})
            assert (made.status, made.json["template_id"]) == (201, "python")
            path = f"/v1/sessions/{made.json['session_id']}"
            ran = (await ask(app, "POST", f"{path}/exec", {"command": "echo a; echo b >&2"})).json
            assert (ran["stdout"], ran["stderr"]) == ("a\nb\n", "")
            [row] = (await ask(app, "GET", "/v1/sessions")).json
            assert (row, row["exec_count"]) == ((await ask(app, "GET", path)).json | {"age_secs": row["age_secs"],
                                                "idle_secs": row["idle_secs"]}, 1)  # fmt: skip
            assert (await ask(app, "DELETE", path)).json["deleted"] is True
            again = await ask(app, "DELETE", path)
            assert (again.status, again.json["deleted"]) == (404, False)
            gone = await ask(app, "POST", f"{path}/exec", {"command": "true"})
            assert (gone.status, gone.json["error_code"]) == (404, "no_such_session")
            assert gone.json["error"].startswith("no such session")

    asyncio.run(scenario())


def test_a_one_shot_exec_and_its_alias() -> None:
    """A body without a template is refused by the code that the client knows."""

    async def scenario() -> None:
        async with served() as (node, app):
            for path in ("/v1/exec", "/exec"):
                assert (await ask(app, "POST", path, {"template_id": "python", "code": "print(1)"})).json[
                    "stdout"
                ] == "1\n"
                missing = await ask(app, "POST", path, {"code": "1"})
                assert (missing.status, missing.json["error_code"]) == (400, "template_id_required")
            unknown = await ask(app, "POST", "/v1/exec", {"template_id": "nope", "code": "1"})
            assert (unknown.status, unknown.json["error_code"]) == (404, "no_template")
            assert (await ask(app, "GET", "/health")).json["status"] == "ok"
            node.draining = True
            late = await ask(app, "POST", "/v1/exec", {"template_id": "python", "code": "1"})
            assert (late.status, late.json["error_code"]) == (503, "draining")

    asyncio.run(scenario())


def test_the_wire_keeps_tenants_apart_too(tmp_path: Path) -> None:
    """It has no way to send a key, but somebody else's client may."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.raw("acme", "POST", "/v1/sessions", {"template_id": "python"})).json["session_id"]
            assert (await way.raw("bob", "GET", "/v1/sessions")).json == []
            for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/exec")):
                assert (await way.raw("bob", method, f"/v1/sessions/{made}{path}", {"command": "id"})).status == 404
            assert (await way.raw("acme", "GET", f"/v1/sessions/{made}")).status == 200

    asyncio.run(scenario())
