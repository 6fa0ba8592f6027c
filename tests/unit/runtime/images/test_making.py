"""Programs that make something of packages: told of when they fail, whole or not there."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from hotbed.runtime.images import making
from hotbed.runtime.images.manifests import BadImage


def program(folder: Path, script: str, name: str = "mmdebstrap") -> None:
    """A program of that name which is a script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def quiet(_: int) -> None:
    """Nobody asks how far it is."""


def test_a_debian_is_made_by_mmdebstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the packages; what it says is told when it fails, and its absence with a hint."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, 'for last; do :; done; echo "$@" > "$last"')
    making.debian_root(["nodejs", "ruby"], tmp_path / "folder" / "root.tar", quiet)
    assert "--include=nodejs,ruby" in (tmp_path / "folder" / "root.tar").read_text()

    program(tmp_path, "echo no mirror >&2; exit 25")
    with pytest.raises(BadImage, match="mmdebstrap ended with 25: no mirror"):
        making.debian_root(["nodejs"], tmp_path / "root.tar", quiet)
    monkeypatch.setenv("PATH", str(tmp_path / "folder"))
    with pytest.raises(BadImage, match="apt-get install mmdebstrap"):
        making.debian_root(["nodejs"], tmp_path / "root.tar", quiet)


def test_packages_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is there was made to its end, and is not made again."""
    target = tmp_path / "home" / "ml"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path, 'mkdir -p "$8"; echo "$@" > "$8/half"; exit 1', "python")
    with pytest.raises(BadImage):
        making.python_packages(["numpy"], target, quiet)
    assert list(target.parent.iterdir()) == []

    program(tmp_path, 'mkdir -p "$8"; echo "$@" > "$8/whole"', "python")
    for _ in range(2):
        making.python_packages(["numpy"], target, quiet)
    assert (target / "whole").read_text().endswith(" numpy\n")


def test_who_gives_it_up_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it started."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "sleep 1000 & sleep 1000")

    def over(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        making.debian_root(["nodejs"], tmp_path / "root.tar", over)


@pytest.mark.parametrize(
    ("text", "release"),
    [("ID=debian\nVERSION_CODENAME=trixie\n", "trixie"), ("ID=ubuntu\nVERSION_CODENAME=noble\n", "bookworm")],
)
def test_the_release_is_this_machines_if_it_is_a_debian(tmp_path: Path, text: str, release: str) -> None:
    """Else one that we know."""
    (tmp_path / "os-release").write_text(text)

    assert making.release(tmp_path / "os-release") == release
    assert making.release(tmp_path / "none") == "bookworm"
