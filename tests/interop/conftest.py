"""A server with keys, a server without, and the published client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.store import KeyStore
from tests.e2e.node_process import NodeProcess, node_process
from tests.interop.published import Published, free_port, install

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a run waits for the client's installation too: that time is the index's, not the test's."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60, func_only=True))


@dataclass(frozen=True, kw_only=True)
class Served:
    """A running server and the keys that were made for it, by tenant."""

    node: NodeProcess
    url: str
    keys: dict[str, str]

    @property
    def socket(self) -> str:
        """Its Unix socket."""
        return str(self.node.socket)

    def as_tenant(self, tenant: str) -> dict[str, str]:
        """The published client's variables."""
        return {"COLLIMATE_API_KEY": self.keys[tenant], "COLLIMATE_BASE_URL": self.url}


@pytest.fixture(scope="session")
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """The published client."""
    assert request.config.cache is not None
    python = install(Path(str(request.config.cache.mkdir("collimate-rl-0.8.0"))))
    return Published(python=python, directory=tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for keys."""
    directory = tmp_path_factory.mktemp("served")
    keys = {}
    store = KeyStore(directory / "home")
    for tenant, tier in (("acme", "pro"), ("bob", "pro"), ("tiny", "demo")):
        key, secret = Key(tenant=tenant, tier=tier, scopes=frozenset(("run", "grade", "read"))), new_secret()
        store.add(key, secret)
        keys[tenant] = key_text(key, secret, collimate=True)
    store.close()
    yield from _running(directory, keys)


@pytest.fixture(scope="module")
def open_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server on loopback for which no key was ever made."""
    yield from _running(tmp_path_factory.mktemp("open"), {})


def _running(directory: Path, keys: dict[str, str]) -> Iterator[Served]:
    port = free_port()
    directory.chmod(0o755)
    settings: dict[str, Any] = {"backend": "fork", "port": port, "shared": True, "home": str(directory / "home")}
    with node_process(directory, **settings) as node:
        if node.word.get("code") == "isolation_unavailable":
            pytest.skip(node.word["message"])
        assert node.word["ready"], node.word
        yield Served(node=node, url=f"http://127.0.0.1:{port}", keys=keys)
