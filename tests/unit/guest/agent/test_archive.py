"""Trees go in and out as tar streams, and out of the folder leads no way."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from hotbed.guest.agent import archive
from hotbed.guest.agent.request import Refused
from tests.unit.guest.agent_process import AgentProcess


def packed(agent: AgentProcess, path: Path) -> tarfile.TarFile:
    """What the agent packs."""
    agent.send("pack", path=str(path))
    header, _, fds = agent.receive()
    assert header["op"] == "packed", header
    with os.fdopen(fds[0], "rb") as stream:
        return tarfile.open(fileobj=io.BytesIO(stream.read()))


def unpack(agent: AgentProcess, path: Path, stream: bytes) -> dict[str, object]:
    """The agent's answer to a tar stream."""
    end, out = os.pipe()
    agent.send("unpack", fds=[end], path=str(path))
    os.close(end)
    with os.fdopen(out, "wb") as sink:
        try:
            sink.write(stream)
        except BrokenPipeError:
            pass
    return agent.receive()[0]


def tar_of(*members: tuple[str, bytes, bytes, str]) -> bytes:
    """A tar of (name, type, content, link) members."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name, kind, content, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname, info.mode = kind, len(content), link, 0o4755
            tar.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def test_a_tree_survives_the_round_trip(agent: AgentProcess, tmp_path: Path) -> None:
    """Content, modes, links, empty folders; sockets and FIFOs stay behind."""
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "deep" / "er" / "file").write_bytes(os.urandom(100_000))
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o750)
    (source / "link").symlink_to("deep/er/file")
    os.link(source / "run", source / "same")
    os.mkfifo(source / "fifo")
    stream = io.BytesIO()
    agent.send("pack", path=str(source))
    _, _, fds = agent.receive()
    with os.fdopen(fds[0], "rb") as pipe:
        stream.write(pipe.read())
    answer = unpack(agent, tmp_path / "target", stream.getvalue())
    target = tmp_path / "target"

    assert answer["op"] == "unpacked" and answer["files"] == 7
    assert (target / "deep/er/file").read_bytes() == (source / "deep/er/file").read_bytes()
    assert os.readlink(target / "link") == "deep/er/file"
    assert (target / "run").stat().st_mode & 0o777 == 0o750
    assert (target / "same").stat().st_ino == (target / "run").stat().st_ino
    assert (target / "empty").is_dir() and not (target / "fifo").exists()


def test_a_tree_with_a_path_that_is_too_long_says_so_and_has_no_end(agent: AgentProcess, tmp_path: Path) -> None:
    """Who asked has the answer's beginning already: the stream itself must tell."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(21):
        os.mkdir("d" * 200, dir_fd=folder)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)

    archive_of = packed(agent, tmp_path)

    last = archive_of.getmembers()[-1]
    assert last.name == "." and last.pax_headers[archive.FAILED].startswith("bad_path cannot pack all of")
    assert archive_of.fileobj is not None
    archive_of.fileobj.seek(last.offset_data)
    assert archive_of.fileobj.read(1) == b""


def test_one_file_is_packed_under_its_name(agent: AgentProcess, tmp_path: Path) -> None:
    """Without its folder."""
    (tmp_path / "one").write_text("1")

    assert packed(agent, tmp_path / "one").getnames() == ["one"]


def test_holes_larger_than_the_disk_are_not_packed(tmp_path: Path) -> None:
    """A terabyte of nothing takes no room in the sandbox, and all there is where the archive goes."""
    disk = os.statvfs("/")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(disk.f_blocks * disk.f_frsize * 2)

    with pytest.raises(Refused, match="sparse files"):
        archive.pack(str(tmp_path), os.open(os.devnull, os.O_WRONLY))


def test_what_the_owner_locked_is_packed_and_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes away its own rights must not cost its caller everything else."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 1001, 1001)
    monkeypatch.chdir(tmp_path)
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(1001, 1001, 1001)
            os.makedirs("tree/locked")
            for name in ("tree/locked/in", "tree/none"):
                with open(name, "wb") as file:
                    file.write(b"x")
                os.chmod(name, 0)
            os.chmod("tree/locked", 0)
            archive.pack("tree", os.open("packed", os.O_WRONLY | os.O_CREAT))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

    with tarfile.open(tmp_path / "packed") as packed:
        assert {member.name: member.mode for member in packed} == {"locked": 0, "locked/in": 0, "none": 0}
    assert (tmp_path / "tree" / "locked").stat().st_mode & 0o777 == 0
    os.chmod(tmp_path / "tree" / "locked", 0o700)


def test_packing_what_is_not_there_is_refused(agent: AgentProcess, tmp_path: Path) -> None:
    """Before any descriptor is sent."""
    assert agent.ask("pack", path=f"{tmp_path}/none")["code"] == "not_found"


@pytest.mark.parametrize(
    "members",
    [
        [("../out", tarfile.REGTYPE, b"x", "")],
        [("a/../../out", tarfile.REGTYPE, b"x", "")],
        [("hole", tarfile.SYMTYPE, b"", ".."), ("hole/out", tarfile.REGTYPE, b"x", "")],
        [("hard", tarfile.LNKTYPE, b"", "../secret")],
    ],
)
def test_members_that_lead_out_are_refused(
    agent: AgentProcess, tmp_path: Path, members: list[tuple[str, bytes, bytes, str]]
) -> None:
    """By name, or through a link that came before."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in").mkdir()
    answer = unpack(agent, tmp_path / "in", tar_of(*members))

    assert (answer["op"], answer["code"]) == ("error", "bad_path")
    assert not (tmp_path / "out").exists()


def test_absolute_names_devices_and_setuid_bits_are_tamed(agent: AgentProcess, tmp_path: Path) -> None:
    """An archive may come from anywhere."""
    stream = tar_of(
        ("/abs", tarfile.REGTYPE, b"x", ""), ("dev", tarfile.CHRTYPE, b"", ""), ("fifo", tarfile.FIFOTYPE, b"", "")
    )
    answer = unpack(agent, tmp_path / "in", stream)

    assert answer["files"] == 1
    assert sorted(os.listdir(tmp_path / "in")) == ["abs"]
    assert (tmp_path / "in" / "abs").stat().st_mode & 0o7777 == 0o755


def test_a_link_in_the_way_is_replaced_not_followed(agent: AgentProcess, tmp_path: Path) -> None:
    """The file behind it stays as it is."""
    (tmp_path / "in").mkdir()
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "in" / "x").symlink_to("../victim")
    unpack(agent, tmp_path / "in", tar_of(("x", tarfile.REGTYPE, b"new", "")))

    assert (tmp_path / "victim").read_text() == "kept"
    assert (tmp_path / "in" / "x").read_text() == "new"


@pytest.mark.parametrize("stream", [b"", b"garbage" * 200, tar_of(("a", tarfile.REGTYPE, b"x" * 5000, ""))[:2000]])
def test_a_broken_stream_is_told(agent: AgentProcess, tmp_path: Path, stream: bytes) -> None:
    """Not taken for an empty or complete archive."""
    answer = unpack(agent, tmp_path / "in", stream)

    assert (answer["op"], answer["code"]) == ("error", "bad_request")


def test_a_deep_and_locked_tree_is_removed(agent: AgentProcess, tmp_path: Path) -> None:
    """Deeper than any path may be long."""
    here = os.open(tmp_path, os.O_RDONLY)
    os.mkdir("top", dir_fd=here)
    at = os.open("top", os.O_RDONLY, dir_fd=here)
    for _ in range(300):
        os.mkdir("d" * 100, dir_fd=at)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    os.close(here)
    (tmp_path / "top").chmod(0)

    assert agent.ask("remove", path=f"{tmp_path}/top")["op"] == "done"
    assert os.listdir(tmp_path) == []


def test_a_helper_that_was_killed_is_told() -> None:
    """It said nothing."""
    end, out = os.pipe2(os.O_NONBLOCK)
    os.close(out)

    assert archive.outcome_from(end)["code"] == "failed"
