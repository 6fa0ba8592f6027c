"""hotbed audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.node.keys.key import Key, new_secret
from hotbed.node.keys.store import KeyStore
from tests.e2e.node_process import node_process
from tests.interop.published import free_port
from tests.unit.cli.conftest import Hotbed


@pytest.mark.slow
def test_what_admins_did_is_listed(hotbed: Hotbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made on the command line, read from the server."""
    store, key = KeyStore(tmp_path / "home"), Key(tenant="acme", tier="pro", scopes=frozenset(("run",)))
    store.add(key, new_secret())
    store.close()
    with node_process(tmp_path, home=str(tmp_path / "home"), port=free_port(), shared=True) as node:
        monkeypatch.setenv("HOTBED_URL", f"unix://{node.socket}")
        shown, told = hotbed("audit", "--limit", "2"), hotbed("audit", "--json").json

    assert [line.split("  ")[2] for line in shown.out.splitlines()[1:]] == ["server.start", "key.create"]
    assert [line["target"] for line in told["actions"]][1] == key.id


def test_a_node_that_serves_nobody_else_keeps_none(hotbed: Hotbed, node_socket: str) -> None:
    """And says so."""
    refused = hotbed("audit")

    assert (refused.code, "hotbed serve" in refused.err) == (3, True)
