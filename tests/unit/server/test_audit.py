"""Which requests are lines of the audit log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.errors import NodeUnavailable
from hotbed.node.keys.audit import Action, AuditLog
from tests.unit.server.asking import ask
from tests.unit.server.keyed import Doorway, doorway

TEMPLATE = {"name": "mine", "env": {"A": "1"}}


def lines(way: Doorway) -> list[tuple[str, str]]:
    """What the log has besides keys, oldest first."""
    assert way.node.audit is not None
    found = [(line["action"], line["actor"]) for line in way.node.audit.page(limit=100)]
    return [line for line in reversed(found) if not line[0].startswith("key.")]


def test_what_an_admins_key_does_is_noted_and_what_others_do_is_not(tmp_path: Path) -> None:
    """In both wires, and only once it is done."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            way.node.audit = AuditLog(tmp_path)
            boss = way.add_key("ops", scopes=("admin",))
            for key in (boss, "acme"):
                made = await way.ask(key, "POST", "/v1/sandboxes", {"template": "python"})
                assert (await way.ask(key, "DELETE", f"/v1/sandboxes/{made.json['id']}")).status == 200
                assert (await way.raw(key, "POST", "/v1/templates", {**TEMPLATE, "image": "host"})).status == 201
            assert (await way.ask(boss, "DELETE", "/v1/sandboxes/nope")).status == 404

            assert [action for action, _ in lines(way)] == ["sandbox.delete", "template.create"]
            assert all(actor.endswith(" of ops") for _, actor in lines(way))
            way.node.audit.close()

    asyncio.run(scenario())


def test_a_line_that_cannot_be_written_is_in_the_nodes_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thing is done, and the database away: the client is told that it is done, and the operator what."""

    def away(log: AuditLog, action: Action) -> None:
        raise NodeUnavailable("the database does not answer")

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            way.node.audit = AuditLog(tmp_path)
            boss = way.add_key("ops", scopes=("admin",))
            made = await way.ask(boss, "POST", "/v1/sandboxes", {"template": "python"})
            monkeypatch.setattr(AuditLog, "note", away)

            assert (await way.ask(boss, "DELETE", f"/v1/sandboxes/{made.json['id']}")).status == 200
            assert "event=audit_unwritten" in caplog.text and made.json["id"] in caplog.text
            way.node.audit.close()

    asyncio.run(scenario())


def test_the_nodes_user_is_noted_when_he_ends_what_is_a_tenants(tmp_path: Path) -> None:
    """His own things are nobody's business."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            way.node.audit = AuditLog(tmp_path)
            mine = await ask(way.own, "POST", "/v1/sandboxes", {"template": "python"})
            theirs = await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})
            for made in (mine, theirs):
                await ask(way.own, "DELETE", f"/v1/sandboxes/{made.json['id']}")

            assert [action for action, _ in lines(way)] == ["sandbox.delete"]
            assert way.node.audit.page(limit=1)[0]["details"] == {"tenant": "acme"}
            way.node.audit.close()

    asyncio.run(scenario())
