"""Two tenants and a stranger at one TCP port: nobody guesses in, and nobody waits for somebody else's burst."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.store import KeyStore
from tests.e2e.node_process import NodeProcess, node_process
from tests.interop.published import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # each test starts processes


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A server that asks for keys, with those of its tenants."""

    node: NodeProcess
    port: int
    keys: dict[str, str]

    def ask(self, connection: http.client.HTTPConnection, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        """One rollout."""
        headers = {"Authorization": f"Bearer {self.keys.get(key, key)}", "X-Hotbed-API": "1"}
        connection.request("POST", "/v1/rollouts", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def connect(self) -> closing[http.client.HTTPConnection]:
        """A connection of one's own."""
        return closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    """Four sandboxes for everybody."""
    store, keys, port = KeyStore(tmp_path / "home"), {}, free_port()
    for tenant in ("acme", "bob"):
        key, secret = Key(tenant=tenant, tier="pro", scopes=frozenset(("run", "read"))), new_secret()
        store.add(key, secret)
        keys[tenant] = key_text(key, secret)
    store.close()
    with node_process(tmp_path, port=port, shared=True, home=str(tmp_path / "home"), max_sandboxes=4) as node:
        yield Shared(node=node, port=port, keys=keys)


def test_a_burst_of_one_tenant_is_not_waited_for_by_another(shared: Shared) -> None:
    """Bob's rollouts come and go while most of acme's sixty still wait for a turn."""
    statuses: list[int] = []

    def burst() -> None:
        with shared.connect() as own:
            statuses.append(shared.ask(own, "acme", {"template": "python", "command": "sleep 0.2"})[0])

    threads = [threading.Thread(target=burst) for _ in range(60)]
    for thread in threads:
        thread.start()
    while not shared.node.call("GET", "/v1/health")[1]["queued"] > 20:
        pass
    with shared.connect() as connection:
        for _ in range(3):
            status, answer = shared.ask(connection, "bob", {"template": "python", "command": "echo mine"})
            assert (status, answer["stdout"]) == (200, "mine\n")
    assert shared.node.call("GET", "/v1/health")[1]["queued"] > 0, "bob waited for all of acme"
    for thread in threads:
        thread.join(60)
    assert statuses == [200] * 60


def test_a_stranger_who_guesses_learns_nothing_and_fills_no_log(shared: Shared) -> None:
    """One answer for every wrong key, on one connection, a few lines in the log, and the tenants are served."""
    head, answers = shared.keys["acme"].rpartition("_")[0], set()
    before = shared.node.log.stat().st_size
    with shared.connect() as connection:
        for _ in range(300):
            status, answer = shared.ask(connection, f"{head}_{secrets.token_hex(32)}", {"template": "python"})
            answers.add((status, json.dumps(answer)))
        assert {status for status, _ in answers} == {401} and len(answers) == 1
        assert shared.node.log.stat().st_size - before < 300 * 40, shared.node.log.read_text()[-2000:]
        assert shared.ask(connection, "acme", {"template": "python", "command": "echo hi"})[1]["stdout"] == "hi\n"
