"""Attempts to break the claims on images: what is in them was packed by whoever wanted to."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotbed.errors import BadImage, TemplateFailed
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, TemplateSpec
from hotbed.runtime.images.record import ImageRecord
from tests.support.images import Layout, entry, hard, layer, link


def unpacked(tmp_path: Path, layers: Sequence[bytes], *, most_bytes: int = 1 << 30) -> tuple[Path, ImageRecord]:
    """The tree of an image's last layer, as a node unpacks it. Raises `BadImage`."""
    Layout(tmp_path / f"layout{len(os.listdir(tmp_path))}").add(layers)
    newest = max(tmp_path.glob("layout*"), key=lambda path: path.stat().st_mtime_ns)
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(tmp_path), images=str(tmp_path / "images")))
    backend.builder.most_bytes = most_bytes

    async def build() -> ImageRecord:
        await backend.start()
        try:
            return await backend.builder.build(f"oci:{newest}", lambda about: None)
        finally:
            await backend.close()

    record = asyncio.run(build())
    return backend.images.layer(record.layers[-1]), record


def test_images_stay_in_their_root(tmp_path: Path) -> None:
    """Links of every kind, names that climb, links that are replaced while they are used."""
    host = tmp_path / "host"
    host.mkdir(mode=0o777)
    host.chmod(0o777)
    (host / "secret").write_text("secret")
    up = "/".join([".."] * 30)
    for bad in (
        [link("out", str(host)), entry("out/evil", b"!")],
        [link("out", f"{up}{host}"), entry("out/evil", b"!")],
        [entry(f"{up}{host}/evil", b"!")],
        [link("a", str(host)), link("b", "a"), entry("b/evil", b"!"), hard("b/secret2", "b/secret")],
        [hard("got", f"{host}/secret")],
        [link("got", f"{host}/secret"), entry("got", b"overwritten")],
        [entry("d"), entry("d", b"", type=b"2", linkname=str(host)), entry("d/evil", b"!")],
        [link("proc", "/proc/self/root"), entry(f"proc{host}/evil", b"!")],
        [link(".wh.x", "/"), entry(".wh.out", b""), link("out", str(host)), entry("out/.wh.secret", b"")],
    ):
        try:
            tree, _ = unpacked(tmp_path, [layer(*bad)])
        except BadImage:
            continue
        assert not any(
            path.read_bytes() == b"secret" for path in tree.rglob("*") if path.is_file() and not path.is_symlink()
        )

    assert os.listdir(host) == ["secret"] and (host / "secret").read_text() == "secret"


def test_images_bring_no_rights(tmp_path: Path) -> None:
    """No device, no set-user-id program, no capability, no attribute that steers the overlay."""
    steering = {"SCHILY.xattr.user.overlay.redirect": "/etc", "SCHILY.xattr.trusted.overlay.opaque": "y"}
    tree, record = unpacked(
        tmp_path,
        [
            layer(
                entry("sda", b"", type=b"4", devmajor=8, devminor=0),
                entry("mem", b"", type=b"3", devmajor=1, devminor=1),
                entry("su", b"#!", mode=0o6755),
                entry("cap", b"", pax_headers={"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}),
                entry("d", pax_headers=steering),
            )
        ],
    )

    assert sorted(os.listdir(tree)) == ["cap", "d", "su"]
    assert stat.S_IMODE((tree / "su").stat().st_mode) == 0o755
    assert [os.listxattr(tree / name) for name in ("cap", "d")] == [[], []]
    assert (tree / "su").stat().st_uid != 0 and record.skipped["device nodes"] == 2


def test_template_bombs_contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported takes more than a GiB: the template fails and says why, and another one comes up."""
    tmp_path.chmod(0o755)  # a template of root's has to reach it with an id of its own
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/hotbed_hog.py").write_text("held = b'x' * (3 << 29)\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(tmp_path), images=str(tmp_path / "images")))

    async def attempt() -> None:
        await backend.start()
        try:
            with pytest.raises(TemplateFailed, match="memory|MemoryError"):
                await backend.template(TemplateSpec(name="hog", preload=("hotbed_hog",), programs=()))
            box = await (await backend.template(TemplateSpec(name="other", programs=()))).fork(BoxRequest())
            await box.ready()
            await box.kill()
        finally:
            await backend.close()

    asyncio.run(attempt())


def test_layer_bombs_bounded(tmp_path: Path) -> None:
    """A few kilobytes that unpack to more than there is room for leave nothing."""
    huge = entry("zeros", bytes(64 << 20))
    assert len(gzip.compress(layer(huge), 1)) < 1 << 20

    with pytest.raises(BadImage, match="more than"):
        unpacked(tmp_path, [layer(huge)], most_bytes=8 << 20)

    assert not list((tmp_path / "images/layers").iterdir()) and not list((tmp_path / "images/partial").iterdir())
