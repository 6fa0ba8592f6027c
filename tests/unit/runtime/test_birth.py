"""The middle process: what it reports when a step fails. That it works is for tests/conformance."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from hotbed.runtime import birth
from hotbed.runtime.linux import identity


def middle(plan: dict[str, Any], answer: bytes, before: Callable[[], None] = lambda: None) -> list[str]:
    """Run a middle process with a launcher that answers once; everything it reported."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(10)
    pid = os.fork()
    if pid == 0:
        ours.close()
        before()
        run(plan, theirs)
    theirs.close()
    told = []
    with ours:
        while message := ours.recv(8192):
            told.append(message.decode())
            if message == b"unshared":
                if answer == b"mapped":
                    identity.write_maps(pid, identity.mine())
                ours.send(answer)
    os.waitpid(pid, 0)
    return told


def run(plan: dict[str, Any], launcher: socket.socket) -> NoReturn:
    """In the child: never return into pytest."""
    try:
        birth.run_middle(plan, launcher, 0, 2)
    finally:
        os._exit(99)


def plan(**changes: Any) -> dict[str, Any]:
    """A plan whose root is nowhere."""
    ids = identity.mine()
    return {
        "ids": {"uid": ids.uid, "gid": ids.gid, "count": ids.count},
        "root": "/nowhere",
        "executable": "/usr/bin/env",
        "env": {},
        **changes,
    }


def test_failing_stage_is_named() -> None:
    """Whoever reads it learns what this host refuses, or what we got wrong."""
    told = middle(plan(), b"mapped")

    assert told[-1].startswith("error root filesystem: ")


def test_ids_of_root_are_refused_before_anything_is_made() -> None:
    """The type does not allow them."""
    assert middle(plan(ids={"uid": 0, "gid": 0, "count": 1}), b"mapped")[-1].startswith("error start: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root's tree is put together first")
def test_refused_maps_end_it() -> None:
    """Without a map the namespace has no user at all."""
    assert "not permitted" in middle(plan(), b"not permitted")[-1]


def test_start_variables_are_the_interpreters_only() -> None:
    """What steers a Python is for the sandbox's programs."""
    env = birth._env({"PATH": "/bin", "PYTHONPATH": "/opt/packages"})

    assert env["PATH"] == "/bin" and "PYTHONPATH" not in env and env["LD_BIND_NOW"] == "1"
