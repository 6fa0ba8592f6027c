"""Usage and the audit log, asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hotbed.node.keys.audit import AuditLog
from hotbed.node.ledger.ledger import Ledger
from tests.unit.server.asking import ask
from tests.unit.server.keyed import doorway

RUN = {"template": "python", "code": "print('x' * 1000)"}


def test_a_tenant_sees_its_own_usage_and_an_admin_everybodys(tmp_path: Path) -> None:
    """What one tenant does is none of another's business."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            way.node.ledger = Ledger(tmp_path)
            boss = way.add_key("ops", scopes=("admin",))
            for key in ("acme", "acme", "bob"):
                assert (await way.ask(key, "POST", "/v1/rollouts", RUN)).status == 200
            await way.node.nursery.wait_empty(timeout_s=5)
            [mine] = (await way.ask("acme", "GET", "/v1/usage")).json["tenants"]
            everybody = (await way.ask(boss, "GET", "/v1/usage")).json["tenants"]

            assert (mine["tenant"], mine["rollouts"]) == ("acme", 2)
            assert mine["bytes_out"] > 2000 and mine["bytes_in"] > 50
            assert mine["sandbox_s"] > 0 and mine["cpu_s"] > 0
            assert {tenant["tenant"]: tenant["rollouts"] for tenant in everybody if tenant["rollouts"]} == {
                "acme": 2,
                "bob": 1,
            }
            assert (await way.ask("acme", "GET", "/v1/usage?since=yesterday")).status == 400
            assert (await way.ask("acme", "GET", "/v1/usage?since=2026-02-01&until=2026-01-01")).status == 400

    asyncio.run(scenario())


def test_the_audit_log_is_for_admins(tmp_path: Path) -> None:
    """Page by page; a node that serves nobody else keeps none."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            assert (await ask(way.own, "GET", "/v1/audit")).status == 501
            way.node.audit = AuditLog(tmp_path)
            boss = way.add_key("ops", scopes=("admin",))
            assert (await way.ask("acme", "GET", "/v1/audit")).status == 403
            first = (await way.ask(boss, "GET", "/v1/audit?limit=2")).json
            rest = (await way.ask(boss, "GET", f"/v1/audit?limit=2&before={first['next']}")).json

            assert [line["action"] for line in first["actions"] + rest["actions"]] == ["key.create"] * 3
            assert rest["next"] is None
            assert (await way.ask(boss, "GET", "/v1/audit?limit=many")).status == 400
            way.node.audit.close()

    asyncio.run(scenario())


def test_a_scraper_needs_no_more_than_its_scope(tmp_path: Path) -> None:
    """Prometheus sends a Bearer key and no header of ours."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            scraper = way.add_key("ops", scopes=("metrics",))
            assert (await way.raw(scraper, "GET", "/metrics")).status == 200
            assert (await way.ask(scraper, "GET", "/v1/stats")).status == 200
            assert (await way.raw("acme", "GET", "/metrics")).status == 403
            assert (await way.ask(scraper, "POST", "/v1/rollouts", RUN)).status == 403

    asyncio.run(scenario())
