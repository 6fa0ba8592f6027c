"""A sandbox's life, and its files, on any backend."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile

import pytest

from hotbed.errors import BadPath, FileMissing, InvalidRequest, NotAFile, SandboxGone
from tests.conformance.conftest import Harness


def test_file_written_is_the_file_read(harness: Harness) -> None:
    """Any bytes."""
    data = os.urandom(100_000)
    with harness.box() as box:
        fd, _ = harness.run(box.open("/work/deep/er/file", "w", 0o640))
        with os.fdopen(fd, "wb") as file:
            file.write(data)

        fd, size = harness.run(box.open("/work/deep/er/file", "r"))
        with os.fdopen(fd, "rb") as file:
            assert (file.read(), size) == (data, len(data))


@pytest.mark.parametrize(
    ("path", "error"),
    [("/work/none", FileMissing), ("/work", NotAFile), ("work/x", InvalidRequest), ("/a\0b", InvalidRequest)],
)
def test_bad_path_is_a_typed_error(harness: Harness, path: str, error: type[Exception]) -> None:
    """And the sandbox lives on."""
    with harness.box() as box:
        with pytest.raises((error, BadPath)):
            harness.run(box.open(path, "r"))

        assert harness.exec(box, "command", "true").status == "ok"


def test_tree_travels_both_ways(harness: Harness) -> None:
    """As a tar stream, modes and links included."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("d/run.sh")
        member.size, member.mode = 2, 0o755
        tar.addfile(member, io.BytesIO(b"hi"))
    with harness.box() as box:
        reader, writer = os.pipe()
        with os.fdopen(writer, "wb") as file:
            file.write(packed.getvalue())
        assert harness.run(box.unpack("/work/in", reader)) >= 1

        source = harness.run(box.pack("/work/in"))
        with os.fdopen(source, "rb") as pipe, tarfile.open(fileobj=pipe, mode="r|") as tar:
            found = {member.name.lstrip("./"): member.mode & 0o777 for member in tar if member.isfile()}

    assert found == {"d/run.sh": 0o755}


def test_folders_are_made_listed_and_removed(harness: Harness) -> None:
    """Without a program in between."""
    with harness.box() as box:
        harness.run(box.files("mkdir", "/work/made"))
        names = [entry["name"] for entry in harness.run(box.files("list", "/work"))["entries"]]
        harness.run(box.files("remove", "/work/made"))

        assert names == ["made"]
        with pytest.raises(FileMissing):
            harness.run(box.files("stat", "/work/made"))


def test_sandboxes_do_not_share_files(harness: Harness) -> None:
    """Each starts from the template."""
    with harness.box() as one, harness.box() as other:
        harness.exec(one, "command", "echo x >/work/mine")

        assert harness.exec(other, "command", "ls /work").stdout == b""


def test_killed_sandbox_is_gone(harness: Harness) -> None:
    """Killing twice is fine; using it is an error with a code."""
    with harness.box() as box:
        harness.run(box.kill())
        harness.run(box.kill())

        with pytest.raises(SandboxGone):
            harness.exec(box, "command", "true")
        assert harness.run(box.wait_gone())


def test_kill_ends_an_exec_that_runs(harness: Harness) -> None:
    """Whoever waits is told at once."""
    with harness.box() as box:

        async def both() -> None:
            waiting = asyncio.ensure_future(box.exec(request))
            await asyncio.sleep(0.2)
            await box.kill()
            await waiting

        from hotbed.runtime.base import ExecRequest

        request = ExecRequest(kind="command", program=b"sleep 60")
        with pytest.raises(SandboxGone):
            harness.run(both())


def test_many_sandboxes_live_at_once(harness: Harness) -> None:
    """Each with its own answer."""
    from hotbed.runtime.base import BoxRequest, ExecRequest

    async def one(number: int) -> bytes:
        box = await harness.template.fork(BoxRequest())
        try:
            return (await box.exec(ExecRequest(kind="code", program=b"print(%d)" % number))).stdout
        finally:
            await box.kill()

    async def all_of_them() -> list[bytes]:
        return list(await asyncio.gather(*(one(number) for number in range(24))))

    assert harness.run(all_of_them()) == [b"%d\n" % number for number in range(24)]


def test_nothing_is_counted_after_the_end(harness: Harness) -> None:
    """Stats are what a leak would show in."""
    with harness.box() as box:
        assert box.id in harness.backend.in_use()

    async def none_but_spares() -> None:
        while harness.backend.in_use():
            await asyncio.sleep(0.01)  # some may just be in the making, to be parked

    harness.run(none_but_spares())
