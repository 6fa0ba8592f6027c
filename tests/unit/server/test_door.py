"""The door: who asks, by which key, and in whose words to answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.server.asking import ask
from tests.unit.server.keyed import doorway


def test_nothing_but_a_sign_of_life_without_a_good_key(tmp_path: Path) -> None:
    """Whatever the path, the method and the wire; and a wrong key is no better than none."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            guess = way.keys["acme"][:-1] + ("0" if way.keys["acme"][-1] != "0" else "1")
            paths = ("/v1/sandboxes", "/v1/sessions", "/v1/stats", "/v1/nope", "/v1/leases/hold", "/v1/images")
            for key in ("", guess, "x"):
                for path in paths:
                    for method in ("GET", "POST"):
                        refused = await way.ask(key, method, path, {})
                        assert (refused.status, refused.json["code"]) == (401, "unauthorized"), (key, path)
            assert (await way.raw("", "GET", "/v1/health")).json == {"status": "ok"}
            assert (await way.raw(guess, "GET", "/v1/health")).status == 401
            assert (await way.raw("", "POST", "/v1/health")).status == 401
            way.node.draining = True
            assert (await way.raw("", "GET", "/v1/health")).json == {"status": "draining"}

    asyncio.run(scenario())


def test_a_key_without_our_header_is_answered_in_the_gateways_words(tmp_path: Path) -> None:
    """The client that cannot be changed gets what it knows; ours asks for ours."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            theirs = await way.raw("acme", "POST", "/v1/sandboxes", {"template": "python"})
            assert theirs.status == 201 and theirs.json["id"].startswith("sbx_")
            path = f"/v1/sandboxes/{theirs.json['id'].removeprefix('sbx_')}/exec"
            run = {"command": "echo a; echo b >&2"}
            assert (await way.raw("acme", "POST", path, run)).json["stdout"] == "a\nb\n"
            ours = (await way.ask("acme", "POST", path, run)).json
            assert (ours["stdout"], ours["stderr"]) == ("a\n", "b\n")
            only_ours = await way.raw("acme", "POST", "/v1/rollouts", {"template": "python", "code": "print(1)"})
            assert only_ours.json["stdout"] == "1\n"

    asyncio.run(scenario())


def test_a_node_without_keys_lets_everybody_in(tmp_path: Path) -> None:
    """Until the first key is made; it needs no restart."""

    async def scenario() -> None:
        async with doorway(tmp_path, keys=False) as way:
            assert (await way.ask("", "GET", "/v1/sandboxes")).status == 200
            assert (await way.raw("anything", "GET", "/v1/images")).json["images"][0]["id"] == "python"
            way.add_key("acme")
            assert (await way.ask("", "GET", "/v1/sandboxes")).status == 401
            assert (await ask(way.own, "GET", "/v1/sandboxes")).status == 200  # the Unix socket has no door

    asyncio.run(scenario())


def test_a_rate_is_refused_with_the_time_to_come_back(tmp_path: Path) -> None:
    """One tenant's hurry is not another's."""

    async def scenario() -> None:
        tiers = {"small": {"requests_per_s": 0.5, "burst": 2}}
        async with doorway(tmp_path, tiers=tiers) as way:
            answers = [await way.ask("acme", "GET", "/v1/sandboxes") for _ in range(3)]
            assert [answer.status for answer in answers] == [200, 200, 429]
            assert answers[2].json["code"] == "rate_limited" and answers[2].headers["retry-after"] == "2"
            assert (await way.ask("bob", "GET", "/v1/sandboxes")).status == 200

    asyncio.run(scenario())


def test_refusals_are_counted_under_their_own_codes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of each code at a time, with how many of it there were since."""

    async def scenario() -> None:
        async with doorway(tmp_path, tiers={"small": {"requests_per_s": 0.001, "burst": 1}}) as way:
            for key in ("acme", "acme", "acme", "", ""):
                await way.ask(key, "GET", "/v1/sandboxes")
            monkeypatch.setattr("hotbed.server.door.LOG_EVERY_S", 0.0)
            await way.ask("acme", "GET", "/v1/sandboxes")

    asyncio.run(scenario())

    lines = [line for line in caplog.messages if line.startswith("event=refused")]
    assert [line.split()[1::2] for line in lines] == [
        ["code=rate_limited", "times=1"],
        ["code=unauthorized", "times=1"],
        ["code=rate_limited", "times=2"],
    ]


def test_a_tier_that_is_gone_is_refused(tmp_path: Path) -> None:
    """A key of it is not silently of another."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            key = way.add_key("carol", tier="gold")
            assert (await way.ask(key, "GET", "/v1/sandboxes")).status == 403

    asyncio.run(scenario())
