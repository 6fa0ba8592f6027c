"""A file layer goes from one tree to another and nothing of it is lost."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest.agent import layer
from hotbed.guest.agent.request import Refused


def carry(upper: Path, root: Path, tmp_path: Path) -> dict[str, Any]:
    """Save one tree as a layer and restore it over another; what saving told."""
    folder = os.open(upper, os.O_RDONLY)
    sink = os.open(tmp_path / "layer", os.O_RDWR | os.O_CREAT)
    told = layer.save(folder, sink)
    os.lseek(sink, 0, 0)
    layer.restore(sink, str(root))
    os.close(folder)
    os.close(sink)
    return told


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    """An upper folder with one of each kind."""
    upper = tmp_path / "upper"
    (upper / "work" / "deep").mkdir(parents=True)
    (upper / "work" / "data").write_bytes(bytes(range(256)) * 5000)
    (upper / "work" / "data").chmod(0o640)
    os.utime(upper / "work" / "data", ns=(1_000_000_001, 2_000_000_003))
    os.link(upper / "work" / "data", upper / "work" / "deep" / "same")
    (upper / "work" / "link").symlink_to("../elsewhere")
    (upper / "work" / "empty").touch(mode=0o600)
    os.mkfifo(upper / "work" / "fifo", 0o620)
    os.utime(upper / "work", ns=(5, 7))
    return upper


def test_everything_comes_back_as_it_was(upper: Path, tmp_path: Path) -> None:
    """Content, modes, times to the nanosecond, links that are one file, pipes; what is there otherwise stays."""
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    (root / "work" / "data").write_text("older")
    (root / "work" / "kept").write_text("kept")

    told = carry(upper, root, tmp_path)
    data, same = root / "work" / "data", root / "work" / "deep" / "same"

    assert told == {"files": 7, "size": 256 * 5000, "ipc": told["ipc"]}
    assert data.read_bytes() == (upper / "work" / "data").read_bytes()
    assert stat.S_IMODE(data.stat().st_mode) == 0o640
    assert data.stat().st_mtime_ns == 2_000_000_003
    assert data.stat().st_ino == same.stat().st_ino
    assert os.readlink(root / "work" / "link") == "../elsewhere"
    assert stat.S_ISFIFO((root / "work" / "fifo").stat().st_mode)
    assert (root / "work").stat().st_mtime_ns == 7
    assert (root / "work" / "kept").read_text() == "kept"


def test_what_was_removed_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked as overlayfs marks it with `userxattr` and no device nodes."""
    upper, root = tmp_path / "upper", tmp_path / "root"
    (upper / "replaced").mkdir(parents=True)
    (upper / "removed").touch()
    (root / "removed" / "deep").mkdir(parents=True)
    (root / "replaced").mkdir()
    (root / "replaced" / "old").touch()
    marks = {"removed": {"user.overlay.whiteout": "79"}, "replaced": {"user.overlay.opaque": "79"}}
    monkeypatch.setattr(layer, "_attributes", lambda _folder, name: marks.get(name, {}))

    carry(upper, root, tmp_path)

    assert sorted(path.name for path in root.rglob("*")) == ["replaced"]


@pytest.mark.parametrize("path", ["../out", "a/../../out"])
def test_no_path_leads_out(path: str, tmp_path: Path) -> None:
    """A layer is said by whoever was in the sandbox."""
    with pytest.raises(Refused):
        layer._place(str(tmp_path), path)


def test_a_torn_stream_is_refused(upper: Path, tmp_path: Path) -> None:
    """In the middle of a file."""
    folder = os.open(upper, os.O_RDONLY)
    sink = os.open(tmp_path / "layer", os.O_RDWR | os.O_CREAT)
    layer.save(folder, sink)
    os.ftruncate(sink, 4000)
    os.lseek(sink, 0, 0)
    (tmp_path / "root").mkdir()
    with pytest.raises(Refused, match="middle"):
        layer.restore(sink, str(tmp_path / "root"))
    os.close(folder)
    os.close(sink)


def test_a_small_layer_is_the_same_on_the_spot(upper: Path, tmp_path: Path) -> None:
    """And a large one is left to another process, without a descriptor lost."""
    before = len(os.listdir("/proc/self/fd"))
    folder = os.open(upper, os.O_RDONLY)
    assert layer.save_small(folder) is None
    (upper / "work" / "data").write_bytes(b"little")
    small = layer.save_small(folder)
    sink = os.open(tmp_path / "layer", os.O_RDWR | os.O_CREAT)
    told = layer.save(folder, sink)
    os.close(folder)
    os.close(sink)

    assert small is not None
    assert small.outcome == told
    assert small.data.count(b'"path"') == 7 and small.data.count(b"little") == 1  # reading changed times of access
    assert len(os.listdir("/proc/self/fd")) == before


def test_neither_width_nor_depth_costs_descriptors(tmp_path: Path) -> None:
    """A repository has thousands of folders; a path may be deeper than a process may have files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(map(int, os.listdir("/proc/self/fd"))) + 30
    upper, root = tmp_path / "upper", tmp_path / "root"
    root.mkdir()
    for number in range(most):
        (upper / str(number) / "inner").mkdir(parents=True)
        (upper / str(number) / "inner/file").touch()
    (upper / "/".join("d" * most)).mkdir(parents=True)
    (upper / "0").chmod(0o500)
    (upper / "1/inner/no-way-back").mkdir(mode=0o400)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        told = carry(upper, root, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    paths = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (upper, root)]
    assert told["files"] == len(paths[0]) == 4 * most + 1
    assert paths[0] == paths[1]


def test_many_entries_are_not_small(tmp_path: Path) -> None:
    """Each costs, however little is in it."""
    for number in range(200):
        (tmp_path / str(number)).touch()
    folder = os.open(tmp_path, os.O_RDONLY)

    assert layer.save_small(folder) is None
    os.close(folder)
