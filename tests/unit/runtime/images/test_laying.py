"""A layer is unpacked by somebody who can do nothing else, and their failure is told as it was."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime.images import laying, unpacking
from hotbed.runtime.images.laying import Corrupt
from hotbed.runtime.images.manifests import BadImage, Blob
from hotbed.runtime.images.streams import TooMuch
from hotbed.runtime.linux import identity
from tests.support.images import digest, entry, layer, looks

TAR = layer(entry("d"), entry("d/f", b"text" * 1000))


def lay(path: Path, top: Path, *, most: int = 1 << 20, **blob: Any) -> Any:
    """Lay a blob into a folder that is the user's."""
    top.mkdir()
    ids = identity.mine()
    if os.geteuid() == 0:
        os.chown(top, ids.uid, ids.gid)
    length = 0 if path.is_dir() else path.stat().st_size
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        whole = Blob(path=str(path), length=length, **blob)
        return laying.lay(whole, fd, ids, most=most, entries=100, tick=lambda _: None)
    finally:
        os.close(fd)


def test_a_layer_belongs_to_the_sandboxes_user(tmp_path: Path) -> None:
    """So that an overlay can copy its files up, and nobody has to change owners."""
    (tmp_path / "b").write_bytes(gzip.compress(TAR))

    found = lay(tmp_path / "b", tmp_path / "t", diff_id=digest(TAR))

    assert found["diff_id"] == digest(TAR) and found["entries"] == 2
    assert (tmp_path / "t/d/f").stat().st_uid == identity.mine().uid


def test_bytes_that_are_not_their_digests_are_corrupt(tmp_path: Path) -> None:
    """The blob's, or what it unpacks to."""
    (tmp_path / "b").write_bytes(TAR)

    wrongs: list[dict[str, Any]] = [{"digest": digest(b"")}, {"diff_id": digest(b"")}]
    for number, wrong in enumerate(wrongs):
        with pytest.raises(Corrupt):
            lay(tmp_path / "b", tmp_path / f"t{number}", **wrong)


def test_other_bytes_are_corrupt_whatever_they_are(tmp_path: Path) -> None:
    """They may be no tar, or no gzip at all: what matters is that another copy may be good."""
    for name, data in {
        "zeros": bytes(100),
        "gzip": b"\x1f\x8b" + bytes(50),
        "climbs": layer(entry("../x", b"")),
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Corrupt):
            lay(tmp_path / name, tmp_path / f"{name}.d", digest=digest(TAR))


def test_a_layer_that_is_refused_says_why(tmp_path: Path) -> None:
    """In the words of what found it."""
    for name, data in {"climbs": layer(entry("../x", b"")), "big": gzip.compress(bytes(2 << 20))}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises((BadImage, TooMuch), match="leads out|more than"):
            lay(tmp_path / name, tmp_path / f"{name}.d")


def test_a_header_takes_no_memory_that_it_only_claims(tmp_path: Path) -> None:
    """Names and attributes are told in headers as long as they say, which may be gigabytes."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 6 << 30
    (tmp_path / "b").write_bytes(header.tobuf(tarfile.GNU_FORMAT))
    os.truncate(tmp_path / "b", 7 << 30)

    with pytest.raises(BadImage, match="header of 6144 MiB"):
        lay(tmp_path / "b", tmp_path / "t")


def test_who_unpacks_has_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes more ends the layer, not the machine."""
    (tmp_path / "b").write_bytes(TAR)

    for take, match in ((lambda *_, **__: bytearray(2 << 30), "1024 MiB"), (deep, "RecursionError")):
        monkeypatch.setattr(unpacking, "unpack", take)
        with pytest.raises(BadImage, match=match):
            lay(tmp_path / "b", tmp_path / f"t{match[:4]}")


def deep(*_: Any, **__: Any) -> None:
    """Without end."""
    deep()


def test_a_layer_larger_than_its_memory_is_unpacked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content goes by in blocks, whether it is compressed or not."""
    monkeypatch.setattr(laying, "MEMORY_LIMIT", 16 << 20)
    tar = layer(entry("f", bytes(64 << 20)))
    (tmp_path / "b").write_bytes(gzip.compress(tar, 1))

    assert lay(tmp_path / "b", tmp_path / "t", most=1 << 30, diff_id=digest(tar))["size"] == 64 << 20


def test_a_folder_is_packed_on_the_way(tmp_path: Path) -> None:
    """A root directory is a source too, and comes out as it is."""
    (tmp_path / "r/a").mkdir(parents=True)
    (tmp_path / "r/a/f").write_bytes(b"x")
    os.symlink("a", tmp_path / "r/l")
    os.link(tmp_path / "r/a/f", tmp_path / "r/h")
    os.setxattr(tmp_path / "r/a/f", "user.note", b"\xff")

    lay(tmp_path / "r", tmp_path / "t")

    assert looks(tmp_path / "t") == looks(tmp_path / "r")
    assert (tmp_path / "t/h").samefile(tmp_path / "t/a/f")
    assert os.getxattr(tmp_path / "t/a/f", "user.note") == b"\xff"


def test_nothing_is_left_of_whoever_unpacked(tmp_path: Path) -> None:
    """No process, no descriptor."""
    (tmp_path / "b").write_bytes(TAR)
    before = len(os.listdir("/proc/self/fd")), children()

    lay(tmp_path / "b", tmp_path / "t")

    assert (len(os.listdir("/proc/self/fd")), children()) == before


def children() -> set[str]:
    """Of the test runner, which other tests may have given some."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
