"""A layer's tar as a folder that an overlay can use, whatever is in the tar."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime.images.streams import BadBlob, Forward, TooMuch
from hotbed.runtime.images.unpacking import Report, unpack
from hotbed.runtime.linux.beneath import BadName, is_whiteout
from tests.support.images import WHEN, digest, entry, hard, layer, link


def unpacked(top: Path, *entries: tuple[tarfile.TarInfo, bytes], **limits: Any) -> Report:
    """Unpack them into a folder."""
    top.mkdir(exist_ok=True)
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return unpack(Forward(io.BytesIO(layer(*entries)), 1 << 30), fd, **limits)
    finally:
        os.close(fd)


def is_opaque(path: Path) -> bool:
    """Whether an overlay hides what lower layers have in it."""
    return "user.overlay.opaque" in os.listxattr(path)


def test_files_folders_and_links_are_as_the_layer_says(tmp_path: Path) -> None:
    """Content, modes and times; of folders too, though files are put into them later."""
    report = unpacked(
        tmp_path / "t",
        entry("d", mode=0o555, mtime=WHEN - 5),
        entry("d/f", b"text", mode=0o640),
        link("d/l", "/etc/passwd"),
        hard("h", "d/f"),
        entry("d/pipe", b"", type=tarfile.FIFOTYPE),
    )

    top = tmp_path / "t"
    assert (top / "d/f").read_bytes() == b"text" and stat.S_IMODE((top / "d/f").stat().st_mode) == 0o640
    assert (top / "d").stat().st_mtime == WHEN - 5 and stat.S_IMODE((top / "d").stat().st_mode) == 0o555
    assert os.readlink(top / "d/l") == "/etc/passwd" and (top / "d/l").lstat().st_mtime == WHEN
    assert (top / "h").samefile(top / "d/f") and (top / "h").stat().st_mtime == WHEN
    assert stat.S_ISFIFO((top / "d/pipe").stat().st_mode)
    assert report.entries == 5 and report.size == 4 and report.implicit == []
    (top / "d").chmod(0o755)


def test_times_are_kept_to_the_nanosecond(tmp_path: Path) -> None:
    """A build that compares times would run again."""
    unpacked(tmp_path / "t", entry("f", b"", pax_headers={"mtime": "1700000000.123456789"}))

    assert (tmp_path / "t/f").stat().st_mtime_ns == 1_700_000_000_123_456_789


def test_whiteouts_become_an_overlays(tmp_path: Path) -> None:
    """One hides a name, one hides all that a folder has below."""
    unpacked(tmp_path / "t", entry("a"), entry("a/.wh.gone", b""), entry("b"), entry("b/.wh..wh..opq", b""))

    assert is_whiteout((tmp_path / "t/a/gone").lstat()) and not is_opaque(tmp_path / "t/a")
    assert is_opaque(tmp_path / "t/b") and os.listdir(tmp_path / "t/b") == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_folder_that_replaces_one_hides_it(tmp_path: Path, order: int) -> None:
    """Its whiteout may come first or last."""
    unpacked(tmp_path / "t", *[entry("a"), entry(".wh.a", b"")][::order], entry("a/f", b"new"))

    assert is_opaque(tmp_path / "t/a") and (tmp_path / "t/a/f").read_bytes() == b"new"


def test_a_later_entry_replaces_an_earlier(tmp_path: Path) -> None:
    """Whatever the two are."""
    unpacked(
        tmp_path / "t", entry("a"), entry("a/f", b"1"), entry("a", b"2"), entry("b", b"3"), link("b", "c"), entry("b")
    )

    assert (tmp_path / "t/a").read_bytes() == b"2" and (tmp_path / "t/b").is_dir()
    assert not (tmp_path / "t/b").is_symlink()


def test_a_link_replaced_by_a_file_keeps_its_target(tmp_path: Path) -> None:
    """The file is written in the link's place, not through it."""
    unpacked(tmp_path / "t", entry("target", b"kept"), link("l", "target"), entry("l", b"new"))

    assert (tmp_path / "t/target").read_bytes() == b"kept" and (tmp_path / "t/l").read_bytes() == b"new"


@pytest.mark.parametrize("target", ["/", "../../../../../../../..", "{tmp}", "{tmp}/.."])
def test_nothing_is_written_through_a_link_out_of_the_tree(tmp_path: Path, target: str) -> None:
    """The oldest trick: a link, then a file below it."""
    (tmp_path / "t").mkdir()
    try:
        unpacked(tmp_path / "t", link("out", target.format(tmp=tmp_path)), entry("out/evil", b"!"))
    except BadName:
        pass

    assert not (tmp_path / "evil").exists() and not Path("/evil").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/../evil", "a/.."])
def test_a_name_that_climbs_is_refused(tmp_path: Path, name: str) -> None:
    """As a file, as a hard link's name and as its target."""
    for bad in (entry(name, b"!"), hard("x", name), hard(name, "f"), entry(name)):
        with pytest.raises(BadName):
            unpacked(tmp_path / "t", entry("f", b""), bad)

    assert not (tmp_path / "evil").exists()


def test_a_hard_link_reaches_no_file_outside(tmp_path: Path) -> None:
    """Neither by its name nor through a link."""
    (tmp_path / "secret").write_text("s")

    for target in (str(tmp_path / "secret"), "out/secret"):
        with pytest.raises(BadName):
            unpacked(tmp_path / "t", link("out", str(tmp_path)), hard("x", target))


def test_a_folder_that_was_replaced_leaves_its_mode_to_nobody(tmp_path: Path) -> None:
    """Modes of folders come last, when another thing may have the name: a file, or a link out of the tree."""
    (tmp_path / "host").mkdir(mode=0o700)

    unpacked(
        tmp_path / "t",
        *(entry("a", mode=0o777), entry("a/b", mode=0o777), entry("a", b"", mode=0o600)),
        *(entry("d", mode=0o777), link("d", str(tmp_path / "host"))),
        *(entry("x/y", mode=0o777), entry("x", b""), entry("x"), link("x/y", str(tmp_path / "host"))),
    )

    assert stat.S_IMODE((tmp_path / "host").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "t/a").stat().st_mode) == 0o600


def sparse(name: str, size: int, pieces: dict[int, bytes]) -> tuple[tarfile.TarInfo, bytes]:
    """A file with holes, as GNU tar writes it (its format 1.0)."""
    numbers = [len(pieces), *(number for at, data in pieces.items() for number in (at, len(data)))]
    table = "".join(f"{number}\n" for number in numbers).encode()
    content = table.ljust(-(-len(table) // 512) * 512, b"\0") + b"".join(pieces.values())
    about = {"major": "1", "minor": "0", "name": name, "realsize": str(size)}
    return entry(name, content, pax_headers={f"GNU.sparse.{key}": value for key, value in about.items()})


def test_holes_cost_nothing_however_large(tmp_path: Path) -> None:
    """A terabyte of nothing around two pieces."""
    size = 1 << 40
    report = unpacked(tmp_path / "t", sparse("f", size, {0: b"first", size - 4: b"last"}), entry("g", b"after"))

    found = (tmp_path / "t/f").stat()
    assert (found.st_size, found.st_blocks * 512 < 1 << 20, report.size) == (size, True, 14)
    with open(tmp_path / "t/f", "rb") as file:
        assert file.read(6) == b"first\0" and file.seek(size - 4) and file.read() == b"last"
    assert (tmp_path / "t/g").read_bytes() == b"after"


def test_a_pipe_is_as_the_layer_says(tmp_path: Path) -> None:
    """Its mode and its time too."""
    unpacked(tmp_path / "t", entry("p", b"", type=tarfile.FIFOTYPE, mode=0o620))

    found = (tmp_path / "t/p").stat()
    assert stat.S_ISFIFO(found.st_mode) and (stat.S_IMODE(found.st_mode) & ~0o022, found.st_mtime) == (0o600, WHEN)


def test_attributes_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    """They are no full disk, which would have other images removed."""
    big = {"SCHILY.xattr.user.big": "x" * 100_000, "SCHILY.xattr.user.small": "y"}
    report = unpacked(tmp_path / "t", entry("f", b"", pax_headers=big))

    assert report.skipped["attributes that are too large here"] >= 1


def test_devices_and_rights_are_left_out_and_counted(tmp_path: Path) -> None:
    """Neither may an image bring."""
    report = unpacked(
        tmp_path / "t",
        entry("null", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        entry("disk", b"", type=tarfile.BLKTYPE, devmajor=8, devminor=0),
        entry("su", b"#!", mode=0o4755),
        entry("cap", b"", pax_headers={"SCHILY.xattr.security.capability": "x"}),
    )

    assert sorted(os.listdir(tmp_path / "t")) == ["cap", "su"]
    assert stat.S_IMODE((tmp_path / "t/su").stat().st_mode) == 0o755 and os.listxattr(tmp_path / "t/cap") == []
    assert report.skipped == {"device nodes": 2, "set-user-id bits": 1, "attributes security.*": 1}


def test_users_attributes_come_along_and_an_overlays_do_not(tmp_path: Path) -> None:
    """`user.overlay.redirect` would show one folder in another's place."""
    headers = {"SCHILY.xattr.user.note": "é\udcff", "SCHILY.xattr.user.overlay.redirect": "/etc"}
    report = unpacked(tmp_path / "t", entry("d", pax_headers=headers), entry("f", b"", pax_headers=headers))

    for name in ("d", "f"):
        assert os.listxattr(tmp_path / "t" / name) == ["user.note"]
        assert os.getxattr(tmp_path / "t" / name, "user.note") == b"\xc3\xa9\xff"
    assert report.skipped == {"attributes user.*": 2}


def test_folders_that_are_needed_but_not_described_are_told(tmp_path: Path) -> None:
    """They are the lower layers' to describe."""
    report = unpacked(tmp_path / "t", entry("a/b/f", b""), entry("c"), entry("a"))

    assert report.implicit == ["a/b"]


def test_entries_and_bytes_are_bounded(tmp_path: Path) -> None:
    """A million empty files are a bomb too."""
    with pytest.raises(TooMuch, match="entries"):
        unpacked(tmp_path / "t", *(entry(f"f{n}", b"") for n in range(20)), entries=10)


def test_a_file_that_says_it_is_huge_is_not_believed(tmp_path: Path) -> None:
    """Its layer ends before."""
    info, _ = entry("f", b"short")
    data = bytearray(layer((info, b"short")))
    info.size = 1 << 40
    data[:512] = info.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "t").mkdir()
    fd = os.open(tmp_path / "t", os.O_RDONLY | os.O_DIRECTORY)

    with pytest.raises(BadBlob, match="middle of a file"):
        unpack(Forward(io.BytesIO(bytes(data)), 1 << 30), fd)
    os.close(fd)


def test_what_is_no_tar_is_a_bad_blob(tmp_path: Path) -> None:
    """Said so, not half believed."""
    with pytest.raises(BadBlob, match="no tar"):
        unpack(Forward(io.BytesIO(b"no tar at all" * 100), 1 << 30), os.open(tmp_path, os.O_RDONLY))


def test_an_empty_layer_is_one(tmp_path: Path) -> None:
    """Builders make them."""
    assert unpacked(tmp_path / "t").entries == 0


def test_the_digest_covers_the_padding(tmp_path: Path) -> None:
    """A diff id is of the whole stream."""
    data = layer(entry("f", b"x")) + bytes(10240)
    stream = Forward(io.BytesIO(data), 1 << 30)
    (tmp_path / "t").mkdir()
    fd = os.open(tmp_path / "t", os.O_RDONLY | os.O_DIRECTORY)

    unpack(stream, fd)

    os.close(fd)
    assert stream.digest() == digest(data)
