"""The node's side of a build."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import BadImage, NoSpace
from hotbed.runtime.images.building import Builder
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store

RECORD = ImageRecord(digest="sha256:" + "1" * 64, source="s", layers=())


class Mason:
    """Stands in for the process: answers what it was given, and keeps what it was asked."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.far: list[socket.socket] = []

    async def supervise(self, over: str) -> socket.socket:
        """A channel with the answers in it."""
        assert over == "images"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for answer in self.answers:
            theirs.send(json.dumps(answer).encode())
        self.far.append(theirs)
        return ours

    def job(self) -> Any:
        """What it was asked."""
        return json.loads(self.far[-1].recv(1 << 17))

    def close(self) -> None:
        """Its ends."""
        for sock in self.far:
            sock.close()


def build(mason: Mason) -> tuple[ImageRecord, list[Any]]:
    """Have something built."""
    heard: list[Any] = []
    record = asyncio.run(Builder(mason.supervise, Store(Path("/store"))).build("oci:/x", heard.append, stranger=True))
    return record, heard


def test_progress_is_handed_on_and_the_record_returned() -> None:
    """And the job names everything that the process needs."""
    mason = Mason({"op": "progress", "at": 1}, {"op": "done", "record": RECORD.to_plain()})

    record, heard = build(mason)

    assert record == RECORD and heard == [{"op": "progress", "at": 1}]
    job = mason.job()
    assert job["source"] == "oci:/x" and job["store"] == "/store" and job["stranger"] and job["ids"]["uid"] != 0
    mason.close()


def test_a_failure_has_its_own_class() -> None:
    """By the code that the process gave."""
    for code, kind in (("no_space", NoSpace), ("bad_image", BadImage)):
        mason = Mason({"op": "failed", "code": code, "message": "m"})
        with pytest.raises(kind, match="m"):
            build(mason)
        mason.close()


def test_a_process_that_dies_is_a_failure() -> None:
    """Not a wait for ever."""
    mason = Mason()

    async def attempt() -> None:
        task = asyncio.ensure_future(Builder(mason.supervise, Store(Path("/s"))).build("oci:/x", print))
        await asyncio.sleep(0)
        mason.close()
        with pytest.raises(BadImage, match="died"):
            await task

    asyncio.run(attempt())


def test_giving_up_closes_the_channel() -> None:
    """Which is how the process hears of it."""
    mason = Mason()

    async def attempt() -> None:
        task = asyncio.ensure_future(Builder(mason.supervise, Store(Path("/s"))).build("oci:/x", print))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(attempt())
    mason.job()

    assert mason.far[0].recv(1) == b""
    mason.close()
