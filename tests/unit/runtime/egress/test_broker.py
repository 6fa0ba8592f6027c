"""The broker process's loop, in this process; rights are given up in tests/e2e/test_egress.py."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import Any

import pytest

from hotbed.guest.frames import Header
from hotbed.runtime.egress.broker import Broker
from hotbed.runtime.link import Link
from tests.support.wards import Walls


class Node:
    """The other end of a broker's channel."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.heard: asyncio.Queue[Header] = asyncio.Queue()
        self.broker = Broker(theirs)
        self.walls = Walls()
        self.link = Link(
            ours, body_limit=1 << 20, on_frame=lambda head, _, __: self.heard.put_nowait(head), on_end=lambda _: None
        )

    def open(self, number: int, policy: dict[str, Any], *, op: str = "open") -> None:
        """Announce a sandbox and have its doors made."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.walls.wire(number, [3128], theirs.detach())
        with ours:
            self.link.post({"op": op, "id": number, "policy": json.dumps(policy)}, b"", (ours.fileno(),))

    async def hear(self, op: str) -> Header:
        """The next of a kind."""
        while True:
            header = await asyncio.wait_for(self.heard.get(), 5)
            if header["op"] == op:
                return header

    async def close(self) -> None:
        """End it."""
        self.link.end("done")
        await asyncio.wait_for(self.broker.ended, 5)


def test_doors_open_serve_and_close() -> None:
    """From the node's word to a refusal inside, and back to the node."""

    async def act() -> tuple[list[int], bytes, list[str]]:
        node = Node()
        node.open(7, {"mode": "allowlist", "allow": ["a.org"]})
        await node.hear("opened")
        reader, writer = await asyncio.open_connection("127.0.0.1", node.walls.ports[3128])
        writer.write(b"CONNECT b.org:443 HTTP/1.1\r\n\r\n")
        answer = await reader.read(100)
        writer.close()
        node.link.post({"op": "report", "id": 7, "ask": 1})
        rows = await node.hear("decisions")
        report = await node.hear("report")
        node.link.post({"op": "close", "id": 7})
        closed = await node.hear("closed")
        await node.close()
        denied = [said["tally"]["denied"] for said in (rows, report, closed)]
        return denied, answer, [rows["rows"][0]["name"], closed["op"]]

    denied, answer, told = asyncio.run(act())

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert denied == [1, 0, 0]  # the counts of what it tells of, and then of what came since
    assert told == ["b.org", "closed"]


def test_a_sandbox_that_ended_first_is_told() -> None:
    """By the end of its channel."""

    async def act() -> Header:
        node = Node()
        node.walls.broken = True
        node.open(7, {"mode": "open"})
        broken = await node.hear("broken")
        await node.close()
        return broken

    assert asyncio.run(act())["message"] == "the sandbox has ended"


def test_a_policy_is_changed_and_unknown_sandboxes_have_no_tally() -> None:
    """Each question is answered."""

    async def act() -> tuple[Header, Header]:
        node = Node()
        node.open(7, {"mode": "open"})
        await node.hear("opened")
        node.link.post({"op": "policy", "id": 7, "policy": json.dumps({"mode": "none"}), "ask": 1})
        changed = await node.hear("changed")
        node.link.post({"op": "report", "id": 8, "ask": 2})
        report = await node.hear("report")
        await node.close()
        return changed, report

    changed, report = asyncio.run(act())

    assert changed["ask"] == 1 and report["tally"] is None


def test_a_sandbox_that_is_opened_again_has_one_policy() -> None:
    """What came through its first doors is held to it too."""

    async def act() -> tuple[bytes, int]:
        node = Node()
        node.open(7, {"mode": "allowlist", "allow": ["a.org"]})
        await node.hear("opened")
        first = node.walls.ports[3128]
        node.open(7, {"mode": "allowlist", "allow": ["b.org"]})
        await node.hear("opened")
        reader, writer = await asyncio.open_connection("127.0.0.1", first)
        writer.write(b"CONNECT a.org:443 HTTP/1.1\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(100), 5)
        writer.close()
        wards = len(node.broker._wards)
        await node.close()
        return answer, wards

    answer, wards = asyncio.run(act())

    assert answer.startswith(b"HTTP/1.1 403") and wards == 1


@pytest.mark.parametrize("doors", [[["tcp", 80]], [["udp", 53]], [["tcp", 80], ["tcp", 443]], [7], 7, None])
def test_what_is_no_door_is_refused(doors: object) -> None:
    """An image's template may send anything; a socket that nothing can be accepted from would keep the broker busy."""

    async def act() -> tuple[Header, int]:
        node = Node()
        before = len(os.listdir("/proc/self/fd"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(theirs, [json.dumps({"doors": doors, "failed": []}).encode()], [ours.fileno()])
        theirs.close()
        with ours:
            node.link.post({"op": "open", "id": 7, "policy": json.dumps({"mode": "open"})}, b"", (ours.fileno(),))
        broken = await node.hear("broken")
        node.link.post({"op": "close", "id": 7})
        await node.hear("closed")
        left = len(os.listdir("/proc/self/fd")) - before
        await node.close()
        return broken, left

    broken, left = asyncio.run(act())

    assert broken["message"] and left == 0
