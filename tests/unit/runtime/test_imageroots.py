"""The root of an image's template, put together for real in a throw-away namespace and looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hotbed.guest import kernel
from hotbed.guest.template import isolate
from hotbed.runtime import imageroots, imageview
from hotbed.runtime.images.record import ImagePython, ImageRecord
from hotbed.runtime.linux import mounts
from tests.unit.guest.in_namespace import in_user_namespace

DIGEST = "sha256:" + "1" * 64
RECORD = ImageRecord(digest=DIGEST, source="s", layers=(DIGEST,), workdir="/app/src")
INSIDE = replace(RECORD, python=ImagePython(executable="/usr/bin/python3", version="3.12"))

Look = Callable[[Path, Path], bool]


def assembled(tmp_path: Path, record: ImageRecord, look: Look, *folders: str, links: tuple[str, ...] = ()) -> bool:
    """Put a root together over one layer with these folders and look at the template's and the sandboxes' part."""
    layer, root = tmp_path / "layer", tmp_path / "root"
    for name in ("etc", *folders):
        (layer / name).mkdir(parents=True)
    for name in links:
        os.symlink("/somewhere", layer / name)
    root.mkdir()

    def attempt() -> bool:
        mounts.make_private()
        plan = imageview.as_plan(imageview.describe(record, [layer], [("/usr", "/env")]), {})
        imageroots.assemble(plan, str(root), None)
        top = Path(plan["enter"])
        return look(top, top / isolate.SKELETON[1:])

    return in_user_namespace(attempt, kernel.CLONE_NEWNS)


@pytest.mark.parametrize("record", [RECORD, INSIDE], ids=["host-python", "image-python"])
def test_layers_and_guest_are_where_the_template_looks(tmp_path: Path, record: ImageRecord) -> None:
    """Read-only; whichever Python it is."""

    def look(top: Path, skeleton: Path) -> bool:
        assert (top / ".hotbed/l/0/opt/mine").is_dir() and (top / ".hotbed/lib/hotbed/guest/frames.py").exists()
        assert (top / "dev/null").is_char_device() and (top / "env/bin").is_dir()
        try:
            (top / ".hotbed/l/0/new").touch()
        except OSError:
            return (skeleton / "env").is_dir()
        return False

    assert assembled(tmp_path, record, look, "opt/mine")


def test_an_images_python_sees_the_image_as_its_root(tmp_path: Path) -> None:
    """And can change nothing of it."""

    def look(top: Path, _: Path) -> bool:
        try:
            (top / "opt/mine/new").touch()
        except OSError:
            return (top / "opt/mine").is_dir() and not (top / "usr").exists()
        return False

    assert assembled(tmp_path, INSIDE, look, "opt/mine")


def test_the_skeleton_adds_only_what_the_image_lacks(tmp_path: Path) -> None:
    """A folder of it would take the place of the image's own modes."""

    def look(_: Path, skeleton: Path) -> bool:
        assert not (skeleton / "tmp").exists() and not (skeleton / "root").exists()
        assert (skeleton / "work").is_dir() and (skeleton / "app/src").is_dir()
        return (skeleton / "etc/hosts").is_file() and (skeleton / "etc/passwd").is_file()

    assert assembled(tmp_path, RECORD, look, "tmp", "root")


@pytest.mark.parametrize("record", [RECORD, INSIDE], ids=["host-python", "image-python"])
def test_mount_points_are_no_links_of_the_image(tmp_path: Path, record: ImageRecord) -> None:
    """Or it would choose where proc is mounted."""

    def look(_: Path, skeleton: Path) -> bool:
        return all((skeleton / name).is_dir() and not (skeleton / name).is_symlink() for name in ("dev", "proc", "sys"))

    assert assembled(tmp_path, record, look, links=("dev", "proc", "sys"))
