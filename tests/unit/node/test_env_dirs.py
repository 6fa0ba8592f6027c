"""A directory is held whole under the digest of its bytes, or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tarfile
import time
from io import BytesIO
from pathlib import Path

import pytest

from hotbed.errors import BadEnvDir, InvalidRequest, NotFound
from hotbed.node.env_dirs import EnvDirs
from hotbed.pools import archive
from tests.unit.node.pooling import chunks


def packed(tmp_path: Path, text: str = "x = 1") -> tuple[str, bytes]:
    """A directory's digest and tar."""
    (tmp_path / "e").mkdir(exist_ok=True)
    (tmp_path / "e" / "env.py").write_text(text)
    found = archive.pack(tmp_path / "e")
    with found.tar as tar:
        return found.digest, tar.read()


def put(dirs: EnvDirs, digest: str, data: bytes) -> None:
    """Send a tar."""
    asyncio.run(_put(dirs, digest, data))


async def _put(dirs: EnvDirs, digest: str, data: bytes) -> None:
    await dirs.put(digest, chunks(data))


def test_what_was_put_is_there_and_readable_by_any_user(tmp_path: Path) -> None:
    """A sandbox is another user."""
    dirs = EnvDirs(tmp_path / "held")
    digest, data = packed(tmp_path)
    put(dirs, digest, data)
    put(dirs, digest, data)

    tree = dirs.tree(digest)
    assert (tree / "env.py").read_text() == "x = 1"
    assert (dirs.get(digest).files, dirs.get(digest).size) == (1, len(data))
    assert (tree.stat().st_mode & 0o777, (tree / "env.py").stat().st_mode & 0o777) == (0o755, 0o644)


def test_bytes_that_are_not_what_the_digest_says_are_refused(tmp_path: Path) -> None:
    """An upload that was cut short must not be taken for the directory."""
    dirs = EnvDirs(tmp_path / "held")
    digest, data = packed(tmp_path)

    with pytest.raises(BadEnvDir, match="not what its digest says"):
        put(dirs, digest, data[:-512])
    with pytest.raises(NotFound):
        dirs.get(digest)


@pytest.mark.parametrize("digest", ["", "../../etc", "A" * 64, "0" * 63])
def test_a_digest_is_a_digest(tmp_path: Path, digest: str) -> None:
    """It becomes a path."""
    with pytest.raises(InvalidRequest):
        EnvDirs(tmp_path).get(digest)


def test_a_refused_tar_leaves_nothing(tmp_path: Path) -> None:
    """Not even what came before the bad member."""
    sink = BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name in ("env.py", "../out"):
            tar.addfile(tarfile.TarInfo(name), BytesIO())
    data = sink.getvalue()

    with pytest.raises(BadEnvDir, match="no plain name"):
        put(EnvDirs(tmp_path / "held"), hashlib.sha256(data).hexdigest(), data)
    assert list((tmp_path / "held").iterdir()) == []


def test_the_longest_unused_are_removed_when_there_are_too_many(tmp_path: Path) -> None:
    """But none that was used today."""
    dirs = EnvDirs(tmp_path / "held")
    digests = []
    for number in range(4):
        digest, data = packed(tmp_path, f"x = {number}")
        put(dirs, digest, data)
        old = time.time() - (10 - number) * 24 * 3600
        os.utime(tmp_path / "held" / digest, (old, old))
        digests.append(digest)
    dirs.get(digests[0])
    put(EnvDirs(tmp_path / "held", keep=2), *packed(tmp_path, "x = 9"))

    left = {path.name for path in (tmp_path / "held").iterdir()}
    assert left & set(digests) == {digests[0]}
