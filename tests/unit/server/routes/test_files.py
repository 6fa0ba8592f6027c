"""A sandbox's files over HTTP."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tarfile
from pathlib import Path

import pytest

from hotbed.errors import TooLarge
from hotbed.server.routes.files import check_size, file_entry
from tests.unit.server.asking import Asked, ask, make_sandbox, served

BIG = [os.urandom(700_000) for _ in range(5)]


@pytest.mark.parametrize("body", [[b""], [b"small \xff\0"], BIG], ids=["empty", "small", "big"])
def test_any_bytes_come_back_as_they_went(body: list[bytes]) -> None:
    """With their length and mode."""

    async def scenario() -> None:
        async with served() as (_, app):
            name = await make_sandbox(app)
            url = f"/v1/sandboxes/{name}/files?path=/work/d/f"
            written = await ask(app, "PUT", f"{url}&mode=600", body)
            assert written.json == {"path": "/work/d/f", "size": sum(map(len, body))}
            read = await ask(app, "GET", url)
            assert read.body == b"".join(body)
            assert read.headers["content-length"] == str(len(read.body))
            entry = await ask(app, "POST", url.partition("?")[0], {"operation": "stat", "path": "/work/d/f"})
            assert (entry.json["entry"]["type"], entry.json["entry"]["mode"]) == ("file", 0o600)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "said",
    [{"type": "file", "size": -1, "perm": "x", "mtime_ns": 1e9, "name": 3}, [], None, {"type": {}, "name": "\ud800"}],
)
def test_a_sandbox_that_lies_about_its_files_breaks_nothing(said: object) -> None:
    """What it says is typed before it is passed on."""
    entry = file_entry(said)

    assert isinstance(entry.size, int)
    assert (entry.mode, entry.mtime) == (0, 0.0)
    assert entry.type in ("file", "other")


def test_a_directory_can_be_made_listed_and_removed() -> None:
    """Without running a program."""

    async def scenario() -> None:
        async with served() as (_, app):
            url = f"/v1/sandboxes/{await make_sandbox(app)}/files"
            for verb, path in (("mkdir", "/work/d/e"), ("stat", "/work/d/e")):
                assert (await ask(app, "POST", url, {"operation": verb, "path": path})).status == 200
            listed = await ask(app, "POST", url, {"operation": "list", "path": "/work/d"})
            assert [entry["name"] for entry in listed.json["entries"]] == ["e"]
            await ask(app, "POST", url, {"operation": "remove", "path": "/work/d"})
            answer = await ask(app, "POST", url, {"operation": "stat", "path": "/work/d"})
            assert (answer.status, answer.json["code"]) == (404, "file_not_found")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "query", "code"),
    [
        ("GET", "path=/work/none", "file_not_found"),
        ("GET", "path=/work", "not_a_file"),
        ("GET", "path=work", "bad_path"),
        ("GET", "", "bad_path"),
        ("PUT", "path=/work/a&mode=999", "invalid_request"),
        ("PUT", "path=/work/a&mode=17777", "invalid_request"),
    ],
)
def test_what_is_no_file_says_so(method: str, query: str, code: str) -> None:
    """By a code of its own."""

    async def scenario() -> None:
        async with served() as (_, app):
            name = await make_sandbox(app)
            answer = await ask(app, method, f"/v1/sandboxes/{name}/files?{query}", b"x")
            assert answer.json["code"] == code

    asyncio.run(scenario())


def test_a_file_larger_than_its_disk_is_not_sent(tmp_path: Path) -> None:
    """It takes no room in the sandbox, and all there is at the client's."""
    with open(tmp_path / "sparse", "w+b") as file:
        disk = os.statvfs(tmp_path)
        file.truncate(disk.f_blocks * disk.f_frsize * 2)

        check_size(file.fileno(), 1000)
        with pytest.raises(TooLarge, match="holes"):
            check_size(file.fileno(), os.fstat(file.fileno()).st_size)


def test_a_full_disk_is_said_and_leaves_no_half_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's word for it comes in the middle."""

    def full(fd: int, block: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def scenario() -> None:
        async with served() as (_, app):
            url = f"/v1/sandboxes/{await make_sandbox(app)}/files?path=/work/a"
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", full)
                answer = await ask(app, "PUT", url, b"x")
            assert (answer.status, answer.json["code"]) == (507, "no_space")
            assert (await ask(app, "GET", url)).status == 404

    asyncio.run(scenario())


def test_a_client_that_hangs_up_leaves_no_half_file() -> None:
    """And no descriptor."""

    async def scenario() -> None:
        async with served() as (_, app):
            url = f"/v1/sandboxes/{await make_sandbox(app)}/files?path=/work/a"
            asked = Asked("PUT", url, [b"half", b"never sent"], {})
            asked._incoming.pop()
            asked.hang_up()
            before = len(os.listdir("/proc/self/fd"))
            await asyncio.wait_for(app(asked.scope, asked.receive, asked.send), 5)
            assert len(os.listdir("/proc/self/fd")) == before
            assert (await ask(app, "GET", url)).status == 404

    asyncio.run(scenario())


def tar_of(name: str, data: bytes) -> bytes:
    """A tar stream with one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_a_tree_goes_in_and_out_as_tar() -> None:
    """More than a pipe holds, both ways."""
    data = BIG[0]

    async def scenario() -> None:
        async with served() as (_, app):
            url = f"/v1/sandboxes/{await make_sandbox(app)}/tar?path=/work/t"
            written = await ask(app, "PUT", url, tar_of("f", data))
            assert written.json == {"path": "/work/t", "files": 1}
            read = await ask(app, "GET", url)
            with tarfile.open(fileobj=io.BytesIO(read.body)) as tar:
                member = next(item for item in tar.getmembers() if item.isfile())
                extracted = tar.extractfile(member)
                assert extracted is not None
                assert extracted.read() == data
            assert (await ask(app, "PUT", url, BIG[1])).json["code"] == "invalid_request"
            assert (await ask(app, "GET", url.replace("/t", "/none", 1) + "x")).status == 404

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("header", "status", "body", "told"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=5-100", 206, b"56789", "bytes 5-9/10"),
        ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=4-2", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
    ],
)
def test_a_range_of_a_file_is_as_good_as_a_file(header: str, status: int, body: bytes | None, told: str | None) -> None:
    """For whoever goes on where a download broke off."""

    async def run() -> None:
        async with served() as (_, app):
            url = f"/v1/sandboxes/{await make_sandbox(app)}/files?path=/work/f"
            await ask(app, "PUT", url + "&mode=640", b"0123456789")
            answer = await ask(app, "GET", url, headers={"range": header})
            assert (answer.status, answer.headers.get("content-range")) == (status, told)
            assert body is None or answer.body == body
            head = await ask(app, "HEAD", url)
            assert (head.status, head.headers["content-length"], head.headers["x-hotbed-mode"]) == (200, "10", "640")
            assert head.headers["last-modified"].endswith("GMT") and head.body == b""
            assert (await ask(app, "HEAD", url[:-2])).status == 409

    asyncio.run(run())
