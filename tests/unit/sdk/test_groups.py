"""Sandboxes with one name, both faces."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import InvalidRequest
from hotbed.sdk.client import AsyncClient, Client


def test_leaving_a_group_ends_its_sandboxes_and_no_others(client: Client) -> None:
    """At once, with one request."""
    with client.group("tree-1") as group, client.group("tree-2").sandbox("python") as other:
        mine = [group.sandbox("python", label=str(number)) for number in range(3)]
        for sandbox in mine:
            sandbox.start()
        assert {row.id for row in group.sandboxes()} == {sandbox.id for sandbox in mine}
        ended = group.close()

        assert set(ended) == {sandbox.id for sandbox in mine}
        assert group.close() == () == group.sandboxes()
        assert other.exec(command="echo here").ok


def test_the_asyncio_face_does_the_same(client: Client) -> None:
    """Every method once."""

    async def run() -> None:
        async with AsyncClient(client.link).group("g") as group:
            sandbox = group.sandbox("python")
            await sandbox.start()
            assert [row.id for row in await group.sandboxes()] == [sandbox.id]
            assert await group.close() == (sandbox.id,)

    asyncio.run(run())


def test_sandboxes_are_ended_by_what_they_have(client: Client) -> None:
    """By ids, by labels, by lease; all that is given must hold."""
    made = [client.group("g").sandbox("python", labels={"step": str(number % 2)}) for number in range(4)]
    for sandbox in made:
        sandbox.start()
    ids = [sandbox.id for sandbox in made]

    assert client.delete_sandboxes(ids[0], ids[1], labels={"step": "0"}) == (ids[0],)
    assert set(client.delete_sandboxes(labels={"step": "1"}, group="g")) == {ids[1], ids[3]}
    lease = client.link.hold().id
    assert client.delete_sandboxes(lease_id="nobody's") == ()
    assert client.delete_sandboxes(lease_id=lease) == (ids[2],)


def test_nothing_named_ends_nothing(client: Client) -> None:
    """All of them must be said."""
    with pytest.raises(InvalidRequest, match="which"):
        client.delete_sandboxes()
    with pytest.raises(InvalidRequest, match="name"):
        client.group("")
