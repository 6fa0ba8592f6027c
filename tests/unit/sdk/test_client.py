"""Both faces of a client, against a real node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from hotbed.errors import InvalidRequest, NodeUnavailable
from hotbed.sdk.client import AsyncClient, Client
from hotbed.sdk.connect import aconnect, connect
from hotbed.sdk.template_calls import described


@pytest.fixture
def urls(node_socket: str) -> Iterator[str]:
    """The node's URL."""
    yield f"unix://{node_socket}"


def test_client_asks_about_the_node(client: Client) -> None:
    """Health, what the host allows, counters, templates, sandboxes."""
    assert client.health().status == "ok"
    assert "isolation" in client.capabilities()
    assert "node" in client.stats()
    assert "python" in [row.name for row in client.templates()]
    assert client.sandboxes() == ()


def test_preloads_are_a_list(client: Client) -> None:
    """A string is one too, of letters."""
    with pytest.raises(InvalidRequest, match="preload is one string"):
        client.create_template("letters", preload="json")


def test_template_is_named_once_and_can_be_named_again(client: Client) -> None:
    """The same content under the same name is the same template."""
    first = client.create_template("mine", preload=["json"], env={"A": "b"})
    second = client.create_template("mine", preload=["json"], env={"A": "b"})

    assert (first.name, first.digest) == ("mine", second.digest)


def test_async_client_asks_the_same(urls: str) -> None:
    """With await."""

    async def ask() -> None:
        async with await aconnect(urls) as client:
            assert isinstance(client, AsyncClient)
            assert (await client.health()).status == "ok"
            assert "isolation" in await client.capabilities()
            assert "node" in await client.stats()
            assert "python" in [row.name for row in await client.templates()]
            assert (await client.create_template("mine-too")).name == "mine-too"
            assert await client.sandboxes() == ()
            assert repr(client) == f"AsyncClient({urls!r})"
        with pytest.raises(NodeUnavailable):
            await client.health()

    asyncio.run(ask())


def test_client_shows_its_node_and_whether_it_is_closed(urls: str) -> None:
    """What a notebook prints."""
    with connect(urls) as client:
        assert repr(client) == f"Client({urls!r})"
    assert repr(client) == f"Client({urls!r}, closed)"


def test_template_without_a_name_is_refused() -> None:
    """Before any I/O."""
    with pytest.raises(InvalidRequest):
        described("", "host", (), None, None, None)
