"""One process builds one image: what is complete stays, what is not goes, whatever ends it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import NotFound
from hotbed.runtime.images import mason
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store
from hotbed.runtime.linux import identity
from tests.support.images import Layout, digest, docker_archive, entry, layer, link
from tests.unit.runtime.images.test_saved import frame

BASE = layer(entry("etc", mode=0o700), entry("etc/a", b"1"), entry("bin"))


def ask(home: Path, *fds: int, told: list[Any] | None = None, **job: Any) -> dict[str, Any]:
    """One job's answer, from a fork as the launcher makes them. Progress is put into `told`."""
    ids = identity.mine()
    plain = {"op": "import", "store": str(home), "ids": {"uid": ids.uid, "gid": ids.gid, "count": ids.count}, **job}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        socket.send_fds(ours, [json.dumps({"bytes": 1 << 24, "entries": 1000, **plain}).encode()], list(fds))
        pid = os.fork()
        if pid == 0:
            ours.close()
            mason.run(theirs)
        theirs.close()
        os.waitpid(pid, 0)
        while True:
            answer: dict[str, Any] = json.loads(ours.recv(1 << 20))
            if answer["op"] != "progress":
                return answer
            if told is not None:
                told.append(answer)


def built(home: Path, source: str) -> ImageRecord:
    """The record of an image that can be built."""
    answer = ask(home, source=source)
    assert answer["op"] == "done", answer
    return ImageRecord.from_plain(answer["record"])


def test_each_layer_is_unpacked_once(tmp_path: Path) -> None:
    """Whatever images have it, wherever they come from."""
    top = layer(entry("etc", mode=0o700), entry("etc/b", b"2"))
    wanted = Layout(tmp_path / "l").add([BASE, top], Env=["A=1"])
    docker_archive(tmp_path / "a.tar", [BASE])

    first = built(tmp_path / "s", f"oci:{tmp_path}/l")
    inode = Store(tmp_path / "s").layer(digest(BASE)).stat().st_ino
    second = built(tmp_path / "s", f"docker-archive:{tmp_path}/a.tar")

    assert first.digest == wanted and first.layers == (digest(BASE), digest(top)) and first.env == (("A", "1"),)
    assert second.layers == (digest(BASE),)
    assert Store(tmp_path / "s").layer(digest(BASE)).stat().st_ino == inode
    assert first.size == 2 and first.entries == 5


def test_a_folder_that_a_layer_leaves_out_is_as_it_is_below(tmp_path: Path) -> None:
    """Such a layer is kept for these lower ones alone: over others its folder would be another."""
    bare = layer(entry("etc/b", b"2"))
    layout = Layout(tmp_path / "l")
    layout.add([BASE, bare], "one")
    layout.add([layer(entry("etc", mode=0o711)), bare], "two")

    modes = []
    for tag in ("one", "two"):
        record = built(tmp_path / "s", f"oci:{tmp_path}/l:{tag}")
        assert digest(bare) not in record.layers
        modes.append(stat.S_IMODE((Store(tmp_path / "s").layer(record.layers[1]) / "etc").stat().st_mode))

    assert modes == [0o700, 0o711]


def test_a_corrupt_blob_leaves_nothing(tmp_path: Path) -> None:
    """Neither a layer nor a record nor a part of one."""
    layout = Layout(tmp_path / "l")
    layout.add([BASE])
    blob = layout.path(digest(gzip.compress(BASE, 1, mtime=0)))
    blob.write_bytes(gzip.compress(BASE.replace(b"etc", b"xxx"), 1, mtime=0).ljust(blob.stat().st_size, b"\0"))

    answer = ask(tmp_path / "s", source=f"oci:{tmp_path}/l")

    assert answer["op"] == "failed" and answer["code"] == "bad_image"
    assert not Store(tmp_path / "s").layers() and not os.listdir(tmp_path / "s/partial")


def test_failures_are_told_by_their_code(tmp_path: Path) -> None:
    """What is missing, what is hostile, what is full."""
    Layout(tmp_path / "l").add([layer(link("out", "/"), entry("../x", b""))])

    assert ask(tmp_path / "s", source="oci:/nowhere")["code"] == "bad_image"
    assert "leads out" in ask(tmp_path / "s", source=f"oci:{tmp_path}/l")["message"]
    assert ask(tmp_path / "s", source="no such thing")["code"] == "invalid_request"
    assert mason.failure(OSError(errno.ENOSPC, "full"))["code"] == "no_space"
    assert mason.failure(NotFound("x"))["code"] == "not_found"


def test_an_image_takes_no_more_than_its_share_nor_the_last_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its layers together. A full disk may pass, so it is another failure."""
    Layout(tmp_path / "l").add([BASE, layer(entry("a", bytes(9000))), layer(entry("b", bytes(9000)))])
    source = f"oci:{tmp_path}/l"

    answer = ask(tmp_path / "s", source=source, bytes=20_480 + 9000)
    assert (answer["code"], "images_mib" in answer["hint"]) == ("bad_image", True), answer
    assert ask(tmp_path / "t", source=source, bytes=20_480 + 18_000)["op"] == "done"
    assert ask(tmp_path / "t", source=source, bytes=5)["op"] == "done", "it is here already"
    assert "more than" in ask(tmp_path / "v", source=source, entries=4)["message"], "files without content count"

    monkeypatch.setattr(Store, "room", lambda store: 20_000)
    assert ask(tmp_path / "u", source=source)["code"] == "no_space"
    assert not os.listdir(tmp_path / "u/partial")


def test_progress_never_goes_back(tmp_path: Path) -> None:
    """From one layer to the next."""
    layers = [layer(*(entry(f"{name}{n}", b"x" * 600) for n in range(300))) for name in "ab"]
    Layout(tmp_path / "l").add(layers)
    told: list[Any] = []

    ask(tmp_path / "s", source=f"oci:{tmp_path}/l", entries=2000, told=told)

    ats = [(about["layer"], about["at"]) for about in told if about.get("step") == "unpacking"]
    assert ats and ats == sorted(ats) and [at for _, at in ats] == sorted(at for _, at in ats)


def test_a_saved_layer_makes_another_image(tmp_path: Path) -> None:
    """Its digest covers the parent and all that was done."""
    Layout(tmp_path / "l").add([BASE])
    parent = built(tmp_path / "s", f"oci:{tmp_path}/l")
    records = []
    for recipe in ("make", "make install"):
        (tmp_path / "saved").write_bytes(frame(path="made", kind="file", size=0))
        fd = os.open(tmp_path / "saved", os.O_RDONLY)
        answer = ask(tmp_path / "s", fd, op="extend", parent=parent.to_plain(), recipe=recipe, mounted=["proc"])
        os.close(fd)
        records.append(ImageRecord.from_plain(answer["record"]))

    assert records[0].digest != records[1].digest and records[0].layers == parent.layers
    assert (Store(tmp_path / "s").layer(records[0].over[0]) / "made").exists()


def test_it_ends_when_nobody_hears_it(tmp_path: Path) -> None:
    """A node that is gone wants no image."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    pid = os.fork()
    if pid == 0:
        mason.run(theirs)
    theirs.close()

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
