"""Attempts to break the claims on the dashboard: by what programs choose, and from pages of other sites."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path

from tests.unit.dashboard.looking import OURS, looking
from tests.unit.node.ledger.entries import entry
from tests.unit.server.asking import ask

SHOTS = (
    "<script>alert(1)</script>",
    "</pre></div><svg onload=alert(1)>",
    '" onfocus=alert(1) autofocus x="',
    "' onmouseover='alert(1)",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "<!--",
    "]]>",
    "</title><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\x00\x1b]0;title\x07\u202e",
    "\ud83d\ude00" * 10,
    "x" * 200_000,
)
WAYS = ("id", "label", "group_id", "sandbox_id", "template", "status", "seed", "isolation")
LOADING = ("script", "img", "link", "iframe")


class Page(HTMLParser):
    """What a browser would make of a page: which elements, and with which attributes."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.feed(body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        self.found += [(tag, name, value or "") for name, value in attrs] or [(tag, "", "")]

    @property
    def dangers(self) -> list[tuple[str, str, str]]:
        """What would run something, or load something from elsewhere."""
        return [
            (tag, name, value[:80])
            for tag, name, value in self.found
            if name.startswith("on")
            or (tag in LOADING and name in ("src", "href") and not value.startswith("/static/"))
            or (tag == "script" and not name)
            or value.strip().lower().startswith("javascript:")
        ]


def test_pages_run_nothing(tmp_path: Path) -> None:
    """Every field that a program or its author chooses, with what has broken other dashboards."""

    async def scenario() -> None:
        async with looking(tmp_path) as here:
            for number, shot in enumerate(SHOTS):
                text = shot.encode("utf-8", "replace").decode()
                names = {way: f"{number}{text}" if way == "id" else text for way in WAYS}
                checks = {"checks": [[text, text, text]] * 200, "reason": text, "passed": 0, "total": 1, "trust": text}
                asked = json.dumps({"code": {text: text}, "command": text, "commands": [[text]], "env": {text: text}})
                data = text.encode()
                fields = {
                    "request": asked.encode(),
                    "stdout": data,
                    "stderr": data,
                    "details": {**checks, "pinned": [text]},
                }
                for kind in ("rollout", "grade"):
                    here.note([entry(0, **{**names, **fields, "id": names["id"] + kind, "kind": kind})])
            listed = await here.get("/rollouts")
            hrefs = [value for _, name, value in Page(listed.body).found if name == "href"]
            links = [value for value in hrefs if value.startswith("/rollouts/")]
            assert len(links) == 2 * len(SHOTS)
            for path in ("/rollouts", "/groups", "/sandboxes", *links):
                answer = await here.get(path)
                assert (path[:60], Page(answer.body).dangers) == (path[:60], [])
                assert len(answer.body) < 4 << 20
                assert "script-src 'self'" in answer.headers["content-security-policy"]

    asyncio.run(scenario())


def test_pages_serve_no_stranger(tmp_path: Path) -> None:
    """A form of another site, its script, and a name that its owner lets resolve to this machine."""

    async def scenario(keys: bool) -> None:
        async with looking(tmp_path / str(keys), keys=keys) as here:
            cookie = await here.sign_in("admin") if keys else ""
            here.note([entry(1)])
            for origin in (
                "http://evil.example",
                "null",
                "http://127.0.0.1:9999",
                "http://127.0.0.1:8080.evil.example",
            ):
                for extra in ({}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
                    headers = {"origin": origin, **extra}
                    for path in ("/rollouts/rollout_000001/replay", "/sign-out", "/sign-in"):
                        assert (await here.post(path, cookie=cookie, headers=headers)).status == 403
            listed = await here.get("/rollouts", cookie=cookie)
            assert listed.body.count(b'<th scope="row">') == 1
            page = await here.get("/", cookie=cookie)
            assert "access-control-allow-origin" not in page.headers
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
            assert page.headers["cross-origin-resource-policy"] == "same-origin"
            if not keys:
                rebound = {**OURS, "host": "evil.example:8080", "origin": "http://evil.example:8080"}
                for method, path in (("GET", "/"), ("GET", "/rollouts"), ("POST", "/rollouts/rollout_000001/replay")):
                    assert (await ask(here.app, method, path, headers=rebound)).status == 400

    for keys in (False, True):
        asyncio.run(scenario(keys))
