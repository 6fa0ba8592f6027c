"""The same content is the same bytes; what cannot mean the same in a worker is refused, and so is a hostile tar."""

from __future__ import annotations

import os
import socket
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotbed.errors import BadEnvDir
from hotbed.pools import archive


def make(top: Path) -> Path:
    """A directory with a bit of everything."""
    (top / "tests").mkdir(parents=True)
    (top / "env.py").write_text("x = 1")
    (top / "tests" / "test_a.py").write_bytes(b"\0\xff")
    (top / "run.sh").write_text("true")
    (top / "run.sh").chmod(0o750)
    (top / "é").write_text("unicode")
    (top / "empty").mkdir()
    (top / "link").symlink_to("tests/test_a.py")
    return top


def digest_of(top: Path) -> str:
    """Its name."""
    packed = archive.pack(top)
    packed.tar.close()
    return packed.digest


def test_times_owners_caches_and_listing_order_do_not_show(tmp_path: Path) -> None:
    """Else every run would send it again."""
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    (two / "__pycache__").mkdir()
    (two / "__pycache__" / "env.pyc").write_text("cache")
    (two / ".git").mkdir()
    os.utime(two / "env.py", (1, 1))

    assert digest_of(one) == digest_of(two)


@pytest.mark.parametrize("change", ["content", "name", "mode", "new"])
def test_any_change_shows(tmp_path: Path, change: str) -> None:
    """A stale environment would be worse than a second upload."""
    top = make(tmp_path / "one")
    before = digest_of(top)
    if change == "content":
        (top / "env.py").write_text("x = 2")
    elif change == "name":
        (top / "run.sh").rename(top / "ran.sh")
    elif change == "mode":
        (top / "run.sh").chmod(0o644)
    else:
        (top / "more").mkdir()

    assert digest_of(top) != before


def test_it_comes_out_as_it_went_in(tmp_path: Path) -> None:
    """Links, executables, names and empty directories included."""
    top = make(tmp_path / "one")
    with archive.pack(top).tar as tar:
        count = archive.unpack(tar, tmp_path / "out")

    assert count == 7
    assert digest_of(tmp_path / "out") == digest_of(top)
    assert (tmp_path / "out" / "link").read_bytes() == b"\0\xff"
    assert os.access(tmp_path / "out" / "run.sh", os.X_OK)


@pytest.mark.parametrize(
    ("make_bad", "message"),
    [
        (lambda top: (top / "env.py").unlink(), "has no env.py"),
        (lambda top: (top / "out").symlink_to("/etc/passwd"), "link out of the directory"),
        (lambda top: (top / "tests" / "out").symlink_to("../../x"), "link out of the directory"),
        (lambda top: os.mkfifo(top / "fifo"), "neither a file nor"),
        (lambda top: socket.socket(socket.AF_UNIX).bind(str(top / "s")), "neither a file nor"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_cannot_be_sent_is_refused_by_name(tmp_path: Path, make_bad: Any, message: str) -> None:
    """Before anything is sent."""
    top = make(tmp_path / "e")
    make_bad(top)

    with pytest.raises(BadEnvDir, match=message):
        archive.pack(top)


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    """With what makes one."""
    with pytest.raises(BadEnvDir, match="not a directory") as caught:
        archive.pack(tmp_path / "nowhere")
    assert "hotbed env init" in str(caught.value)


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set is not an environment."""
    top = make(tmp_path / "e")
    monkeypatch.setattr(archive, "FILES_LIMIT", 3)

    with pytest.raises(BadEnvDir, match="over 3 files"):
        archive.pack(top)


def tar_of(*members: tarfile.TarInfo, content: bytes = b"") -> BytesIO:
    """A tar that our client would not make."""
    sink = BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("env.py"))
        for member in members:
            tar.addfile(member, BytesIO(content) if member.isreg() else None)
    sink.seek(0)
    return sink


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """One entry."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "bad",
    [
        member("/etc/x"),
        member("../x"),
        member("a/../../x"),
        member("dev", tarfile.CHRTYPE),
        member("fifo", tarfile.FIFOTYPE),
        member("hard", tarfile.LNKTYPE, "env.py"),
        member("link", tarfile.SYMTYPE, "/etc"),
        member("link", tarfile.SYMTYPE, "../.."),
        member("env.py"),
        member("no/parent"),
    ],
)
def test_a_hostile_member_is_refused_and_makes_nothing_outside(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    """The node unpacks what a client sent."""
    with pytest.raises(BadEnvDir):
        archive.unpack(tar_of(bad), tmp_path / "out")

    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Links are made last, so a member below one has no parent."""
    bad = [member("link", tarfile.SYMTYPE, "."), member("link/through")]

    with pytest.raises(BadEnvDir):
        archive.unpack(tar_of(*bad), tmp_path / "out")


@given(st.binary(max_size=2048))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_a_bad_directory(tmp_path: Path, data: bytes) -> None:
    """Whatever was sent."""
    with pytest.raises(BadEnvDir):
        archive.unpack(BytesIO(data), tmp_path / os.urandom(8).hex())
