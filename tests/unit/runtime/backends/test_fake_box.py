"""One box of the fake backend: a directory that stands for a root."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hotbed.errors import BadPath, FileMissing, NotAFile, SandboxFailed, SandboxGone
from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.base import ExecOutcome, ExecRequest, Limits


def in_box(root: Path, scenario: Callable[[FakeBox], Awaitable[None]]) -> None:
    """Run a scenario with a box, which leaves nothing."""

    async def run() -> None:
        box = FakeBox(1, str(root / "box"), limits=Limits(), env={"A": "template"}, on_gone=lambda box: None)
        try:
            await scenario(box)
        finally:
            await box.kill()
            await box.kill()
        assert not list(root.iterdir())

    asyncio.run(run())


async def shell(box: FakeBox, command: str, **env: str) -> ExecOutcome:
    """Run a command."""
    return await box.exec(ExecRequest(kind="command", program=command.encode(), env=env, timeout_s=10))


def test_promised_paths_are_the_boxs_own(tmp_path: Path) -> None:
    """In what is run and in what it prints; and only whole names."""

    async def scenario(box: FakeBox) -> None:
        outcome = await shell(
            box, "pwd; echo x > /work/f; ls /work; echo /workshop /usr/work; ls /tmp; echo $A $B", B="b"
        )
        assert outcome.stdout == b"/work\nf\n/workshop /usr/work\ntemplate b\n"
        assert (tmp_path / "box/work/f").read_text() == "x\n"

    in_box(tmp_path, scenario)


def test_code_runs_as_main_with_its_arguments(tmp_path: Path) -> None:
    """Like in the warm interpreter."""

    async def scenario(box: FakeBox) -> None:
        program = b"import sys, os\nprint(__name__, sys.argv[1:], os.getcwd())\nopen('/work/f', 'w').close()\n1/0"
        outcome = await box.exec(ExecRequest(kind="code", program=program, args=("a", "b")))
        assert outcome.stdout == b"__main__ ['a', 'b'] /work\n"
        assert (outcome.status, outcome.exit_code) == ("exit", 1)
        assert outcome.stderr.endswith(b"ZeroDivisionError: division by zero\n")

    in_box(tmp_path, scenario)


def test_a_path_cannot_lead_out(tmp_path: Path) -> None:
    """Neither by dots nor by a link."""

    async def scenario(box: FakeBox) -> None:
        await shell(box, "ln -s / /work/out")
        with pytest.raises(BadPath):
            await box.open("/work/out/etc/passwd", "r")
        with pytest.raises(FileMissing):
            await box.open("/../../../etc/passwd", "r")
        await shell(box, "mkfifo /work/pipe")
        with pytest.raises(NotAFile):
            await box.open("/work/pipe", "r")

    in_box(tmp_path, scenario)


def test_nothing_of_a_killed_box_is_left(tmp_path: Path) -> None:
    """Not even what ran away into a session of its own."""

    async def scenario(box: FakeBox) -> None:
        outcome = await shell(box, "setsid sleep 60 & echo $!")
        pid = int(outcome.stdout)
        assert os.path.exists(f"/proc/{pid}")
        await box.kill()
        while os.path.exists(f"/proc/{pid}/exe"):
            await asyncio.sleep(0.01)
        for gone in (box.ready(), shell(box, "true"), box.files("stat", "/work"), box.unpack("/work", os.dup(0))):
            with pytest.raises(SandboxGone):
                await gone

    in_box(tmp_path, scenario)


def test_guest_programs_are_refused_by_name(tmp_path: Path) -> None:
    """They need a sandbox; the channel that was given is closed."""

    async def scenario(box: FakeBox) -> None:
        ours, theirs = socket.socketpair()
        with ours, pytest.raises(SandboxFailed, match="judge"):
            await box.start("judge", {}, theirs)
        assert theirs.fileno() == -1

    in_box(tmp_path, scenario)
