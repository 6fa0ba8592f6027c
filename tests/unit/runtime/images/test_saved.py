"""What a sandbox saved of its files is a layer, as long as it is one."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest.agent import layer as agent_layer
from hotbed.runtime.images import saved
from hotbed.runtime.images.streams import BadBlob, TooMuch
from hotbed.runtime.images.unpacking import Report
from hotbed.runtime.linux.beneath import Tree, is_whiteout
from tests.support.images import looks


def restored(data: bytes, top: Path, most: int = 1 << 20) -> Report:
    """Make a layer of a stream."""
    top.mkdir()
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        try:
            return saved.restore(file.fileno(), fd, most=most, entries=100)
        finally:
            os.close(fd)


def frame(body: bytes = b"", **about: Any) -> bytes:
    """One entry as an agent writes it."""
    header = json.dumps({"mode": 0o644, "times": [1, 1], **about}).encode()
    return struct.pack("!II", len(header), 0) + header + body


def test_what_an_agent_saves_comes_out_as_it_was(tmp_path: Path) -> None:
    """Files, folders, links, whiteouts, opaque folders, attributes."""
    upper = tmp_path / "upper"
    (upper / "d/e").mkdir(parents=True)
    (upper / "d/f").write_bytes(b"text")
    os.link(upper / "d/f", upper / "h")
    os.symlink("d", upper / "l")
    os.mkfifo(upper / "p")
    os.setxattr(upper / "d/f", "user.note", b"x")
    fd = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
    Tree(fd).white_out(("gone",))
    Tree(fd).set_opaque(("d",))
    small = agent_layer.save_small(fd)
    os.close(fd)
    assert small is not None

    report = restored(small.data, tmp_path / "t")

    assert looks(tmp_path / "t") == looks(upper) and report.entries == 7
    assert is_whiteout((tmp_path / "t/gone").lstat()) and (tmp_path / "t/h").samefile(tmp_path / "t/d/f")
    assert os.getxattr(tmp_path / "t/d", "user.overlay.opaque") == b"y"
    assert os.getxattr(tmp_path / "t/d/f", "user.note") == b"x"


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0",
        b"\xff" * 8,
        struct.pack("!II", 4, 0) + b"nope",
        frame(path="../x", kind="file", size=0),
        frame(path="x", kind="odd"),
        frame(path="x", kind="file", size="many"),
        frame(path="x", kind="file", size=5),
        frame(path="x", kind="file"),
        frame(path="x", kind="same", to="../../etc/passwd"),
    ],
)
def test_a_stream_that_is_no_layer_is_refused(tmp_path: Path, data: bytes) -> None:
    """Whoever shared the agent's sandbox may have made it say anything."""
    with pytest.raises((BadBlob, TooMuch)):
        restored(data, tmp_path / "t")

    assert not (tmp_path / "x").exists()


def test_rights_and_steering_attributes_do_not_come_along(tmp_path: Path) -> None:
    """As little as from a tar."""
    about = {"user.overlay.redirect": b"/etc".hex(), "trusted.x": "00"}
    restored(frame(path="f", kind="file", size=0, mode=0o4755, attributes=about), tmp_path / "t")

    assert (tmp_path / "t/f").stat().st_mode & 0o7000 == 0 and os.listxattr(tmp_path / "t/f") == []


def test_a_layer_may_not_be_larger_than_there_is_room(tmp_path: Path) -> None:
    """Said before it is written."""
    with pytest.raises(TooMuch):
        restored(frame(b"x" * 100, path="f", kind="file", size=100), tmp_path / "t", most=50)
