"""Attempts to break the claims on keys and tenants: they are about the server, so a fake backend will do."""

from __future__ import annotations

import asyncio
import secrets
import sys
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.keys.key import Key, new_secret
from hotbed.node.keys.store import KeyStore
from hotbed.server.serving import check_exposure
from hotbed.server.settings import read_settings
from tests.unit.server.keyed import Doorway, doorway


def test_keys_cannot_be_guessed(tmp_path: Path) -> None:
    """Neighbours of a good key, keys of other ids, and every header that is nearly right: one answer for all."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            good = way.keys["acme"]
            head, _, secret = good.rpartition("_")
            guesses = [f"{head}_{secrets.token_hex(32)}" for _ in range(50)]
            guesses += [f"{head}_{secret[:i]}{(int(secret[i], 16) + 1) % 16:x}{secret[i + 1 :]}" for i in range(64)]
            guesses += [good.upper(), good[:-1], good + "0", head, secret, "hb__", "\x00", "' OR 1=1 --"]
            answers = {(a.status, a.body) for a in [await way.ask(guess, "GET", "/v1/sandboxes") for guess in guesses]}
            assert [status for status, _ in answers] == [401]
            for header in (f"Basic {good}", f"Token {good}", f"Bearer{good}x"):
                assert (await way.raw("", "GET", "/v1/sandboxes", authorization=header)).status == 401
            assert (await way.ask(good, "GET", "/v1/sandboxes")).status == 200

    asyncio.run(scenario())


def test_secrets_not_kept(tmp_path: Path) -> None:
    """Whoever copies the node's home has no key."""
    store, secret = KeyStore(tmp_path), new_secret()
    store.add(Key(tenant="acme", tier="pro", scopes=frozenset({"run"})), secret)
    store.close()

    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes() and bytes.fromhex(secret) not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0, file


def test_foreign_things_unseen(tmp_path: Path) -> None:
    """Every verb on every wire, with the very id, says what it says of an id that never was."""

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            for prefix, tree in (("", "sandboxes"), ("sbx_", "sandboxes"), ("sess_", "sessions")):
                verbs = [("GET", ""), ("DELETE", ""), ("POST", "/exec"), ("POST", "/fork"), ("POST", "/connect-url")]
                for method, verb in verbs:
                    for ask in (way.ask, way.raw):
                        body = {"command": "id", "count": 1, "port": 80}
                        foreign = await ask("bob", method, f"/v1/{tree}/{prefix}{made}{verb}", body)
                        assert foreign.status == 404, (tree, method, verb, foreign.body)
            for path in ("/v1/sandboxes", "/v1/sessions", "/v1/health", "/v1/templates", "/v1/pools", "/v1/snapshots"):
                for ask in (way.ask, way.raw):
                    assert made not in (await ask("bob", "GET", path)).body.decode()
            assert (await way.ask("acme", "POST", f"/v1/sandboxes/{made}/exec", {"command": "true"})).json["ok"]

    asyncio.run(scenario())


def test_foreign_things_take_no_longer_to_deny(tmp_path: Path) -> None:
    """What is told of a foreign id and of one that never was takes the same steps: no clock tells them apart."""

    async def steps(way: Doorway, method: str, path: str) -> int:
        count = 0

        def step(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(step)
        try:
            answer = await way.ask("bob", method, path, {"command": "id"} if method == "POST" else b"")
        finally:
            sys.setprofile(None)
        assert answer.status == 404
        return count

    async def scenario() -> None:
        async with doorway(tmp_path) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json["id"]
            never = made[:-4] + "beef"
            for method, verb in (("GET", ""), ("DELETE", ""), ("POST", "/exec")):
                counts = [
                    {await steps(way, method, f"/v1/sandboxes/{name}{verb}") for _ in range(5)}
                    for name in (made, never)
                ]
                assert counts[0] & counts[1], (method, counts)

    asyncio.run(scenario())


def test_tenants_cannot_starve_each_other(tmp_path: Path) -> None:
    """One tenant fills its share and its line; another's request is served as if it were alone."""

    async def scenario() -> None:
        async with doorway(tmp_path, max_sandboxes=3) as way:
            for _ in range(2):
                assert (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).status == 201
            run = {"template": "python", "code": "print(1)"}
            loop = asyncio.get_running_loop()
            waiting = [loop.create_task(way.ask("acme", "POST", "/v1/rollouts", run)) for _ in range(8)]
            done, stuck = await asyncio.wait(waiting, timeout=0.2)
            assert {task.result().status for task in done} == {429} and len(stuck) == 1
            for _ in range(3):
                served = await asyncio.wait_for(way.ask("bob", "POST", "/v1/rollouts", run), 5)
                assert served.json["stdout"] == "1\n"
            for row in (await way.ask("acme", "GET", "/v1/sandboxes")).json["sandboxes"]:
                await way.ask("acme", "DELETE", f"/v1/sandboxes/{row['id']}")
            assert (await asyncio.wait_for(stuck.pop(), 5)).json["stdout"] == "1\n"

    asyncio.run(scenario())


def test_no_open_port_by_accident(tmp_path: Path) -> None:
    """Any address but loopback: not without TLS, and not without a key."""
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        flags = {"host": host, "port": 8080, "home": str(tmp_path)}
        with pytest.raises(InvalidRequest, match="without TLS"):
            read_settings(flags, {})
        with pytest.raises(InvalidRequest, match="no key was ever made"):
            check_exposure(read_settings({**flags, "tls_cert": "cert", "tls_key": "key"}, {}))
