"""Policies and attempts over HTTP; that they hold is in tests/e2e/test_egress.py."""

from __future__ import annotations

import time
from pathlib import Path

from starlette.types import ASGIApp

from hotbed.node.ledger.ledger import Ledger
from tests.unit.node.ledger.test_egress import entry
from tests.unit.server.asking import ask, make_sandbox
from tests.unit.server.routes.test_ledger import in_app


def test_a_sandbox_without_a_network_says_so(tmp_path: Path) -> None:
    """And cannot be given one where the isolation has none."""

    async def scenario(app: ASGIApp) -> None:
        sandbox = await make_sandbox(app)
        state = await ask(app, "GET", f"/v1/sandboxes/{sandbox}/egress")
        refused = await ask(app, "PUT", f"/v1/sandboxes/{sandbox}/egress", {"egress": {"mode": "open"}})
        bad = await ask(app, "PUT", f"/v1/sandboxes/{sandbox}/egress", {"egress": {"allow": ["a b"]}})
        assert state.json["egress"]["mode"] == "none"
        assert refused.json["error_code"] == "not_supported"
        assert bad.status == 400 and "egress.allow[0]" in bad.json["message"]

    in_app(tmp_path, scenario)


def test_attempts_are_listed_page_by_page(tmp_path: Path) -> None:
    """Newest first, narrowed by what is asked for."""
    ledger = Ledger(tmp_path)
    for number in range(3):
        ledger.note(entry(number, verdict="denied" if number else "allowed", at=time.time()))
    ledger.close()

    async def scenario(app: ASGIApp) -> None:
        page = (await ask(app, "GET", "/v1/egress?limit=2")).json
        rest = (await ask(app, "GET", f"/v1/egress?before={page['next']}&verdict=allowed")).json
        mistyped = await ask(app, "GET", "/v1/egress?veridct=denied")
        no_verdict = await ask(app, "GET", "/v1/egress?verdict=refused")
        assert [row["rollout_id"] for row in page["attempts"]] == ["rollout_2", "rollout_1"]
        assert [row["rollout_id"] for row in rest["attempts"]] == ["rollout_0"]
        assert page["attempts"][0]["at"].endswith("Z") and page["attempts"][0]["leak"] is True
        assert (no_verdict.status, "denied" in no_verdict.json["hint"]) == (400, True)
        assert (mistyped.status, "verdict" in mistyped.json["hint"]) == (400, True)

    in_app(tmp_path, scenario)
