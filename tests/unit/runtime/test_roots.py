"""A template's root, put together for real in a throw-away namespace and looked at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotbed.guest import kernel
from hotbed.guest.template import isolate
from hotbed.runtime import hostview, roots
from hotbed.runtime.linux import mounts
from tests.unit.guest.in_namespace import in_user_namespace


def plan(**changes: Any) -> dict[str, Any]:
    """The plan of a template that preloads nothing."""
    return {**hostview.as_plan(hostview.describe(), {}), **changes}


def assembled(tmp_path: Path, look: Any, **changes: Any) -> bool:
    """Put a root together and look at it there."""

    def attempt() -> bool:
        mounts.make_private()
        roots.assemble(plan(**changes), str(tmp_path), None)
        return bool(look(tmp_path))

    return in_user_namespace(attempt, kernel.CLONE_NEWNS)


def test_root_has_programs_devices_and_the_guest(tmp_path: Path) -> None:
    """And nothing else of the host."""

    def look(root: Path) -> bool:
        devices = {path.name for path in (root / "dev").iterdir() if path.is_char_device() and not path.is_symlink()}
        assert devices == {"null", "zero", "full", "random", "urandom", "tty"}
        assert (root / "usr/bin/env").exists()
        assert (root / hostview.GUEST_HOME[1:] / "template/zygote.py").exists()
        assert not (root / "home").exists() and not (root / "root").exists()
        return {path.name for path in root.iterdir()} >= {"usr", "dev", "proc", "opt", "tmp", "etc", ".hotbed"}

    assert assembled(tmp_path, look)


def test_what_is_shown_of_the_host_is_read_only(tmp_path: Path) -> None:
    """From the first moment."""

    def look(root: Path) -> bool:
        for name in ("usr/hotbed", "dev/hotbed", hostview.GUEST_HOME[1:] + "/hotbed"):
            try:
                (root / name).touch()
                return False
            except OSError:
                continue
        return True

    assert assembled(tmp_path, look)


def test_skeleton_is_a_whole_root_with_synthetic_accounts(tmp_path: Path) -> None:
    """What a sandbox finds in its /etc was written by us."""

    def look(root: Path) -> bool:
        skeleton = root / isolate.SKELETON[1:]
        assert (skeleton / "etc/passwd").read_text().splitlines()[0].startswith("root:x:0:0:")
        assert "daemon" not in (skeleton / "etc/passwd").read_text()
        assert not (skeleton / "etc/shadow").exists()
        assert (skeleton / "tmp").stat().st_mode & 0o1777 == 0o1777
        assert (skeleton / "work").is_dir() and list((skeleton / "work").iterdir()) == []
        return all((skeleton / target.lstrip("/")).is_dir() for target in roots.attached(plan()))

    assert assembled(tmp_path, look)


def test_both_names_of_python_resolve(tmp_path: Path) -> None:
    """Debian has no `python`, and programs say it."""

    def look(root: Path) -> bool:
        return all(os.path.lexists(root / "opt/python/bin" / name) for name in ("python", "python3"))

    assert assembled(tmp_path, look)
    assert assembled(tmp_path, look, executable="/usr/bin/python3.11", trees=[["/usr", "/usr"]])


def test_file_that_not_everyone_may_read_is_not_copied(tmp_path: Path) -> None:
    """Root could; that is no reason."""
    (tmp_path / "open").write_text("x")
    (tmp_path / "closed").write_text("secret")
    (tmp_path / "closed").chmod(0o640)
    (tmp_path / "link").symlink_to("/etc/shadow")

    for name in ("open", "closed", "link", "missing"):
        roots._copy(str(tmp_path / name), str(tmp_path / "out" / name))

    assert sorted(os.listdir(tmp_path / "out")) == ["link", "open"]
    assert os.readlink(tmp_path / "out/link") == "/etc/shadow"


def test_large_file_is_not_copied(tmp_path: Path) -> None:
    """The skeleton lives in memory."""
    with open(tmp_path / "large", "wb") as file:
        file.truncate(64 << 20)

    roots._copy(str(tmp_path / "large"), str(tmp_path / "copy"))

    assert not (tmp_path / "copy").exists()


def test_trees_below_opt_are_attached_with_it() -> None:
    """One mount instead of three in every sandbox."""
    found = roots.attached(plan(trees=[["/usr", "/usr"], ["/x", "/opt/python"], ["/y", "/env"]]))

    assert found == ["/usr", "/env", "/opt", "/dev"]


def test_interpreters_libraries_are_in_the_loaders_cache_instead_of_a_variable(tmp_path: Path) -> None:
    """The variable would make every program of a sandbox look there first, in a dozen folders, for each of its own."""
    (tmp_path / "own/lib").mkdir(parents=True)
    (tmp_path / "own/lib/libown.so.1").touch()
    (tmp_path / "root").mkdir()
    path = "/opt/python/lib"

    def attempt() -> bool:
        mounts.make_private()
        made = plan(
            library_path=path,
            env={"LD_LIBRARY_PATH": path},
            trees=[["/usr", "/usr"], [str(tmp_path / "own"), "/opt/python"]],
            executable="/opt/python/bin/python3",
        )
        roots.assemble(made, str(tmp_path / "root"), None)
        etc = tmp_path / "root" / isolate.SKELETON[1:] / "etc"
        told = "LD_LIBRARY_PATH" in made["env"]
        return told != (b"/opt/python/lib/libown.so.1\0" in _cache(etc / "ld.so.cache"))

    assert in_user_namespace(attempt, kernel.CLONE_NEWNS)


def _cache(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
