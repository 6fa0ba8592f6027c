"""A box that is its program tells once how both ended, and keeps no more of the prints than it may."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import pytest

from hotbed.errors import SandboxGone
from hotbed.runtime.base import BoxRequest, ExecRequest
from hotbed.runtime.solo import KEPT, SoloBox
from hotbed.runtime.templates import Ended


class Home:
    """A template that kills at once."""

    def __init__(self) -> None:
        self.killed: list[int] = []
        self.box: SoloBox | None = None

    def kill_box(self, box_id: int) -> None:
        """Reaped in the same instant."""
        self.killed.append(box_id)
        assert self.box is not None
        self.box.on_process_end(Ended(status=9, reason="killed"))


class Slot:
    """A cgroup that remembers."""

    def __init__(self, out: bool) -> None:
        self.out = out

    def was_out_of_memory(self) -> bool:
        """As it was made."""
        return self.out


def made(slot: Any = None) -> tuple[SoloBox, Home]:
    """A box and its template."""
    home = Home()
    home.box = SoloBox(7, home, slot=slot, request=BoxRequest())
    return home.box, home


@pytest.mark.parametrize(
    ("status", "expected"),
    [(0, ("ok", 0, None)), (3 << 8, ("exit", 3, None)), (11, ("signal", None, 11))],
)
def test_the_templates_report_is_the_programs_end(status: int, expected: tuple[str, int | None, int | None]) -> None:
    """With what it had printed."""

    async def main() -> None:
        box, _ = made()
        os.write(box.prints[0], b"out")
        os.write(box.prints[1], b"err")
        box.on_process_end(Ended(status=status, reason="it ended"))
        end = await box.wait()

        assert (end.status, end.exit_code, end.signal) == expected
        assert (end.stdout, end.stderr) == (b"out", b"err")
        assert await box.output() == (b"out", b"err")
        assert box.prints == ()

    asyncio.run(main())


def test_a_kill_for_memory_is_known_before_the_cgroup_goes_back() -> None:
    """The next sandbox starts the count anew."""

    async def main() -> None:
        slot = Slot(True)
        box, _ = made(slot)
        box.on_process_end(Ended(status=9, reason="it ended"))
        slot.out = False

        assert (await box.wait()).status == "oom"
        assert box.ran_out_of_memory()

    asyncio.run(main())


def test_a_template_that_went_first_is_no_end_of_the_programs_own() -> None:
    """Nobody saw how it ended."""

    async def main() -> None:
        box, _ = made()
        box.on_process_end(Ended(status=None, reason="the template ended"))
        with pytest.raises(SandboxGone, match="the template ended"):
            await box.wait()

    asyncio.run(main())


def test_killing_is_idempotent_and_waits_until_it_is_gone() -> None:
    """To cancel the program is to end the box."""

    async def main() -> None:
        box, home = made()
        await box.cancel()
        await box.kill()

        assert home.killed == [7]
        assert await box.wait_gone() == "killed"

    asyncio.run(main())


def test_of_a_flood_head_and_tail_are_read() -> None:
    """Also of a file that only says that it is large."""

    async def main() -> None:
        box, home = made()
        os.write(box.prints[0], b"head" + b"x" * (2 * KEPT) + b"tail")
        os.ftruncate(box.prints[1], 1 << 40)
        stdout, stderr = await box.output()
        await box.kill()

        assert (stdout[:4], stdout[-4:], len(stdout), len(stderr)) == (b"head", b"tail", KEPT, KEPT)

    asyncio.run(main())


def test_nothing_else_can_be_asked_of_it() -> None:
    """There is no agent; what was handed over is closed."""

    async def main() -> None:
        box, _ = made()
        ours, theirs = socket.socketpair()
        reader, writer = os.pipe()
        await box.ready()
        for asked in (
            box.exec(ExecRequest(kind="code", program=b"1")),
            box.start("x", {}, theirs),
            box.open("/x", "r"),
            box.pack("/x"),
            box.unpack("/x", reader),
            box.files("list", "/"),
        ):
            with pytest.raises(SandboxGone, match="runs one program"):
                await asked
        assert theirs.fileno() == -1
        with pytest.raises(BrokenPipeError):
            os.write(writer, b"x")
        assert (await box.pins(), box.waited_s()) == (("off", ()), 0.0)
        os.close(writer)
        ours.close()
        await box.kill()

    asyncio.run(main())
