"""What ran: listed, shown, downloaded, run again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hotbed.dashboard.pages.rollouts import REQUEST_LIMIT, programs
from hotbed.node.rollouts import run_rollout
from hotbed.wire.execs import RolloutRequest
from tests.unit.dashboard.looking import Looking, looking, words
from tests.unit.node.ledger.entries import entry
from tests.unit.server.asking import Answer

EVIL = '</pre><script>alert("pwned")</script><img src=x onerror=alert(1)>'


def rows(answer: Answer) -> int:
    """How many lines a list has."""
    return answer.body.count(b'<th scope="row">')


def test_pages_of_a_long_list_follow_each_other(tmp_path: Path) -> None:
    """Every line once, newest first, with its filter kept on the way."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            here.note(entry(n, status="oom" if n % 2 else "ok", label="a&b") for n in range(130))
            path, seen = "/rollouts?status=oom&label=a%26b", 0
            for expected in (50, 15):
                page = await here.get(path)
                assert rows(page) == expected
                seen += rows(page)
                older = page.body.decode().split('rel="next"')[0].rpartition('href="')[2].split('"')[0]
                path = older.replace("&amp;", "&")
            assert seen == 65
            assert b'rel="next"' not in (await here.get("/rollouts?status=oom&before=60")).body
            assert "Nothing that ran matches" in words(await here.get("/rollouts?kind=put"))
            assert (await here.get("/rollouts?before=x")).status == 400

    asyncio.run(scenario())


def test_a_program_that_prints_markup_is_shown_as_text(tmp_path: Path) -> None:
    """In its code, its output, its label, its group, the message of a check and the reason of a verdict."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            checks = {"checks": [[EVIL, EVIL, EVIL]], "reason": EVIL, "passed": 0, "total": 1, "trust": "isolated"}
            details = {**checks, "suspected_tamper": True, "pinned": [EVIL]}
            names = {"label": EVIL, "group_id": EVIL, "sandbox_id": EVIL, "template": EVIL, "status": EVIL}
            asked = json.dumps({"code": EVIL, "command": EVIL, "args": [EVIL], "spec": {"tests": EVIL}}).encode()
            here.note(
                entry(n, kind=kind, request=asked, stdout=EVIL.encode(), stderr=EVIL.encode(), details=details, **names)
                for n, kind in enumerate(("rollout", "grade", "put", "episode"))
            )
            for path in ("/rollouts", *(f"/rollouts/rollout_{n:06}" for n in range(4)), "/groups"):
                page = await here.get(path)
                assert page.status == 200
                assert b"<script>alert" not in page.body
                assert b"<img src=x" not in page.body
                assert b"&lt;script&gt;alert" in page.body

    asyncio.run(scenario())


def test_an_episode_shows_its_actions_and_what_they_showed(tmp_path: Path) -> None:
    """With its sum of rewards, what is missing of it, and the button that plays it again."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            asked, details = json.dumps({"actions": ["press-41"]}).encode(), {"reason": "", "unkept_steps": 3}
            here.note([entry(1, kind="episode", request=asked, stdout=b"saw-42", reward=2.5, details=details)])
            page = words(await here.get("/rollouts/rollout_000001"))
            for text in ("press-41", "saw-42", "2.5", "the last 3 are not kept", "Replay"):
                assert text in page

    asyncio.run(scenario())


def test_sixteen_mebibytes_are_a_short_page_and_a_download(tmp_path: Path) -> None:
    """Also when they are one line, or not text at all."""
    noise = bytes(range(256)) * (16 << 12)

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            here.note([entry(1, stdout=noise, stderr=b"\0" * (4 << 20), request=b"[" * (2 << 20))])
            page = await here.get("/rollouts/rollout_000001")
            assert page.status == 200
            assert len(page.body) < 2 << 20
            assert "15.9 MiB of 16.0 MiB are not shown" in words(page)
            whole = await here.get("/rollouts/rollout_000001/stdout")
            assert whole.body == noise
            assert whole.headers["content-disposition"] == 'attachment; filename="stdout.bin"'
            assert "sandbox" in whole.headers["content-security-policy"]
            assert whole.headers["content-type"] == "application/octet-stream"
            assert (await here.get("/rollouts/rollout_000001/secrets")).status == 404

    asyncio.run(scenario())


async def ran(here: Looking, command: str) -> str:
    """The id of something that ran just now."""
    return (await run_rollout(here.node, RolloutRequest(template="python", command=command), None)).id


def test_a_replay_really_runs_and_says_what_came_of_it(tmp_path: Path) -> None:
    """As a part for a page that is there, and as a page of its own without a script."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            same = await ran(here, "echo same")
            other = await ran(here, "date +x%s%N")
            part = await here.post(f"/rollouts/{same}/replay", headers={"hx-request": "true"})
            assert (part.status, b"<html" in part.body) == (200, False)
            assert "Identical." in words(part)
            whole = await here.post(f"/rollouts/{other}/replay")
            assert "It came out different." in words(whole)
            assert "Where stdout, byte" in words(whole)
            assert rows(await here.get("/rollouts")) == 4

    asyncio.run(scenario())


def test_only_the_operator_replays(tmp_path: Path) -> None:
    """And what the operator replays of a tenant's is the node's own, and nobody else's to see."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            rollout_id = await ran(here, "echo 1")
            reader, admin = await here.sign_in("read"), await here.sign_in("admin")
            assert (await here.post(f"/rollouts/{rollout_id}/replay", cookie=reader)).status == 403
            assert (await here.get(f"/rollouts/{rollout_id}/replay", cookie=admin)).status == 404
            assert "Identical." in words(await here.post(f"/rollouts/{rollout_id}/replay", cookie=admin))
            assert rows(await here.get("/rollouts", cookie=admin)) == 2
            assert rows(await here.get("/rollouts", cookie=reader)) == 0

    asyncio.run(scenario())


def test_a_tenant_reads_its_own_rollouts(tmp_path: Path) -> None:
    """Another's never was, by whatever part of its id."""

    async def scenario() -> None:
        async with looking(tmp_path, keys=True) as here:
            here.note([entry(1, tenant="bob"), entry(2, tenant="acme")])
            mine = await here.sign_in("read")
            for path in ("rollout_000001", "rollout_000001/stdout", "rollout_00000", "rollout_000002/nothing"):
                assert (await here.get(f"/rollouts/{path}", cookie=mine)).status == 404, path
            assert (await here.get("/rollouts/rollout_000002", cookie=mine)).status == 200
            assert rows(await here.get("/rollouts", cookie=mine)) == 1

    asyncio.run(scenario())


def test_a_request_is_taken_apart_unless_it_is_huge() -> None:
    """The code as code, files under their names, the rest as JSON."""
    asked = {"code": {"a.py": "1", "b.py": "2"}, "spec": {"tests": "assert 1", "type": "x"}, "seed": None}
    code, tests, rest = programs(json.dumps(asked).encode())

    assert (code.name, code.shown.head) == ("code", "# ---- a.py\n1\n# ---- b.py\n2")
    assert (tests.name, tests.shown.head, rest.name) == ("tests", "assert 1", "the rest of the request")
    assert json.loads(rest.shown.head) == {"spec": {"type": "x"}}
    assert [item.name for item in programs(b"{" * (REQUEST_LIMIT + 1))] == ["request"]
    assert programs(b"") == []
