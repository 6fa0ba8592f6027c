"""The launcher process: it answers what it is asked, and ends with its node."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime import launcher
from hotbed.runtime.linux import identity


@pytest.fixture
def control() -> Any:
    """A running launcher's socket; hung up at the end, which must end it."""
    process, control = launcher.spawn()
    control.settimeout(20)
    yield control
    control.close()
    assert process.wait(10) == 0


def ask(control: socket.socket, **plan: Any) -> tuple[dict[str, Any], list[int]]:
    """Have a template started; the answer."""
    ids = identity.mine()
    whole = {"ids": {"uid": ids.uid, "gid": ids.gid, "count": ids.count}, **plan}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        message = json.dumps({"op": "start", "key": 7, "plan": whole}).encode()
        socket.send_fds(control, [message], [theirs.fileno(), 2])
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 4)
    return json.loads(data), fds


def test_template_that_cannot_be_made_is_told_with_its_stage(control: socket.socket) -> None:
    """And the launcher goes on."""
    for _ in range(2):
        answer, fds = ask(control, root="/nowhere", executable="/usr/bin/env", env={})

        assert (answer["op"], answer["key"], fds) == ("failed", 7, [])
        assert "root filesystem" in answer["message"]
        ended, _, _, _ = socket.recv_fds(control, 1 << 16, 4)
        assert json.loads(ended)["op"] == "ended"


def test_launcher_holds_nothing_of_the_node(control: socket.socket) -> None:
    """A fresh interpreter: no argument, no descriptor, no thread of ours but its socket."""
    pid = next(
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and parent_of(path) == os.getpid() and b"launcher" in (path / "cmdline").read_bytes()
    )
    links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]

    assert len([link for link in links if link.startswith("socket:")]) == 1


def parent_of(path: Path) -> int:
    """The parent of a process, 0 when it has just ended."""
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
