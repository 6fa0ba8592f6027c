"""Trees out of and into directories of ours, the second from hostile archives."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import BadPath, Error, InvalidRequest, ProtocolError
from hotbed.sdk.trees import new_spool, pack_tree, unpack_tree


def packed(top: Path) -> io.BytesIO:
    """A directory as an archive."""
    return io.BytesIO(b"".join(pack_tree(top)))


def archive(*members: tuple[str, dict[str, Any], bytes]) -> io.BytesIO:
    """An archive made by hand."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, fields, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(data))
    return out


def file(name: str, data: bytes = b"x", **fields: Any) -> tuple[str, dict[str, Any], bytes]:
    """A regular member."""
    return name, fields, data


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tuple[str, dict[str, Any], bytes]:
    """A link."""
    return name, {"type": kind, "linkname": to}, b""


def test_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    """Names, bytes, modes, links, empty directories; nothing of it through memory at once."""
    top = tmp_path / "from"
    (top / "a/empty").mkdir(parents=True)
    (top / "a/long name ü").write_bytes(os.urandom(700_000))
    (top / "a/long name ü").chmod(0o755)
    (top / "zero").touch()
    (top / "link").symlink_to("a/empty")

    with new_spool() as spool:
        spool.writelines(pack_tree(top))
        skipped = unpack_tree(spool, tmp_path / "to")

    found = tmp_path / "to"
    assert skipped == ()
    assert (found / "a/long name ü").read_bytes() == (top / "a/long name ü").read_bytes()
    assert (found / "a/long name ü").stat().st_mode & 0o777 == 0o755
    assert (found / "link").readlink() == Path("a/empty")
    assert (found / "zero").read_bytes() == b""


def test_what_is_neither_file_nor_directory_nor_link_stays_here(tmp_path: Path) -> None:
    """A pipe would block for ever."""
    os.mkfifo(tmp_path / "pipe")

    with tarfile.open(fileobj=packed(tmp_path)) as tar:
        assert tar.getnames() == []


def test_file_is_not_a_tree(tmp_path: Path) -> None:
    """With the call that sends one."""
    (tmp_path / "f").touch()

    with pytest.raises(InvalidRequest, match=r"upload\(\)"):
        pack_tree(tmp_path / "f")


@pytest.mark.parametrize(
    "member",
    [
        file("/etc/evil"),
        file("../evil"),
        file("a/../../evil"),
        link("out", "/etc"),
        link("out", "../.."),
        link("hard", "/etc/passwd", tarfile.LNKTYPE),
        ("device", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, b""),
        ("pipe", {"type": tarfile.FIFOTYPE}, b""),
    ],
    ids=lambda member: f"{member[0]}-{member[1].get('linkname', '')}",
)
def test_member_that_leads_out_is_left_out_and_named(member: tuple[str, dict[str, Any], bytes], tmp_path: Path) -> None:
    """The rest of the archive is still made."""
    target = tmp_path / "in"

    skipped = unpack_tree(archive(member, file("good")), target)

    assert skipped == (member[0],)
    assert [path.name for path in target.iterdir()] == ["good"]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_is_written_through_a_link_of_the_archive(tmp_path: Path) -> None:
    """Links are made last, when no file comes any more."""
    unpack_tree(archive(link("d", ".."), file("d/evil")), tmp_path / "in")

    assert not (tmp_path / "evil").exists()


def test_links_that_lead_out_together_are_both_looked_at(tmp_path: Path) -> None:
    """`a -> b/..` is harmless until `b -> .` exists."""
    unpack_tree(archive(link("a", "b/.."), link("b", ".")), tmp_path / "in")

    outside = [path for path in (tmp_path / "in").iterdir() if not path.resolve().is_relative_to(tmp_path / "in")]
    assert outside == []


def test_nothing_is_written_through_a_link_that_was_there(tmp_path: Path) -> None:
    """A directory of ours that is a link elsewhere is not a way out."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in/d").symlink_to("../out")
    (tmp_path / "in/f").symlink_to("../out/f")

    skipped = unpack_tree(
        archive(file("d/evil"), file("f", b"new"), ("d", {"type": tarfile.DIRTYPE}, b"")), tmp_path / "in"
    )

    assert set(skipped) == {"d/evil", "d"}
    assert list((tmp_path / "out").iterdir()) == []
    assert (tmp_path / "in/f").read_bytes() == b"new"


def test_set_id_bits_are_dropped(tmp_path: Path) -> None:
    """A trainer may run as root."""
    unpack_tree(archive(file("f", mode=0o6755)), tmp_path)

    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("data", [b"", b"x" * 4096, b"\0" * 512])
def test_archive_that_was_cut_short_is_an_error(data: bytes, tmp_path: Path) -> None:
    """Half a tree must not pass for a whole one."""
    with pytest.raises(ProtocolError, match="cut short"):
        unpack_tree(io.BytesIO(data), tmp_path)


@pytest.mark.parametrize(
    ("told", "kind", "message"),
    [
        ("bad_path cannot pack all of /t: File name too long", BadPath, "File name too long"),
        ("unauthorized no such key", ProtocolError, "no such key"),
        ("bad_path", ProtocolError, "cut short"),
    ],
)
def test_sandbox_may_say_why_it_did_not_send_all(told: str, kind: type[Error], message: str, tmp_path: Path) -> None:
    """And cannot choose any error by it."""
    last = (".", {"type": tarfile.DIRTYPE, "pax_headers": {"HOTBED.failed": told}}, b"")
    sent = archive(file("f"), last).getvalue().rstrip(b"\0")

    with pytest.raises(kind, match=message):
        unpack_tree(io.BytesIO(sent + bytes(-len(sent) % 512)), tmp_path)


def test_folder_that_cannot_be_listed_is_not_left_out_silently(tmp_path: Path) -> None:
    """Half a tree must not pass for a whole one."""
    (tmp_path / "a").mkdir()
    sending = pack_tree(tmp_path)
    next(sending)
    (tmp_path / "a").rmdir()

    with pytest.raises(FileNotFoundError):
        list(sending)


def test_archive_that_is_none_is_an_error(tmp_path: Path) -> None:
    """Whatever the sandbox sent."""
    with pytest.raises(ProtocolError, match="cannot be read"):
        unpack_tree(io.BytesIO(b"x" * 2048 + bytes(1024)), tmp_path)
