"""Where layers and images are kept: by content, shared by every template, node and restart of this machine's user.

    layers/HEX/tree        a lower folder for overlays; HEX is the digest of the tar that it was, uncompressed
    layers/HEX/about.json  its size, and its lock: shared while a template uses it, exclusive while it is removed
    images/HEX.json        an image's record; its mtime is when it was last used
    downloads/KEY          what a registry sent, until it is unpacked
    partial/NAME           a layer in the making, locked by who makes it
    turns/KEY              a lock, while somebody fetches an image or makes a layer that others may want as well

A layer is complete or not there: it is made in `partial` and renamed. What a killed process leaves in `partial` has no
lock any more, which is how the next one knows it for rubbish. An image whose layers are not all there is not there.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.errors import NotFound
from hotbed.runtime.images.record import ImageRecord, hex_of
from hotbed.runtime.images.turns import Turns
from hotbed.runtime.linux import beneath

FRESH_S = 3600.0
_RESERVE = 1 << 30
_ENTRY_BYTES = 1024  # about what an inode and its name take


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """A layer in the making, which is this process's alone."""

    path: Path
    lock: int
    tree: int


class Hold:
    """Layers that must not go while this is open."""

    def __init__(self, locks: Iterable[int]) -> None:
        self._locks = list(locks)

    def close(self) -> None:
        """Let them go. Idempotent."""
        for fd in self._locks:
            os.close(fd)
        self._locks.clear()


class Store:
    """One directory. Any number of processes may use it at once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._layers, self._images = home / "layers", home / "images"
        self._partial, self.downloads = home / "partial", home / "downloads"
        self.turns = Turns(home / "turns")

    def prepare(self) -> None:
        """Make the directories, and remove what died in the making."""
        for path in (self.home, self._layers, self._images, self._partial, self.downloads, self.turns.folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._partial.iterdir():
            _remove_unlocked(path, path)

    def has_layer(self, key: str) -> bool:
        """Whether a layer is here."""
        return (self._layers / hex_of(key) / "about.json").exists()

    def layer(self, key: str) -> Path:
        """A layer's tree."""
        return self._layers / hex_of(key) / "tree"

    def about(self, key: str) -> Mapping[str, Any]:
        """What is known of a layer. Raises `NotFound`."""
        try:
            found: Mapping[str, Any] = json.loads((self._layers / hex_of(key) / "about.json").read_text())
        except FileNotFoundError:
            raise NotFound(f"layer {key} is not here any more") from None
        return found

    def begin(self, owner: tuple[int, int] | None) -> Partial:
        """An empty tree of that owner, to be committed or discarded."""
        path = self._partial / secrets.token_hex(8)
        path.mkdir(mode=0o700)
        lock = os.open(path / "about.json", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        tree = path / "tree"
        tree.mkdir(mode=0o755)
        if owner is not None:
            os.chown(tree, *owner)
        return Partial(path=path, lock=lock, tree=os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def commit(self, partial: Partial, key: str, about: Mapping[str, Any]) -> None:
        """The layer is complete. Another process may have been first; then that one's stays."""
        os.write(partial.lock, json.dumps(dict(about)).encode())
        try:
            os.rename(partial.path, self._layers / hex_of(key))
        except OSError:
            if not self.has_layer(key):
                raise
            self.discard(partial)
            return
        os.close(partial.tree)
        os.close(partial.lock)

    def discard(self, partial: Partial) -> None:
        """Remove what was begun."""
        os.close(partial.tree)
        os.close(partial.lock)
        remove_tree(partial.path)

    def put(self, record: ImageRecord) -> None:
        """Keep a record."""
        path = self._images / (hex_of(record.digest) + ".json")
        with tempfile.NamedTemporaryFile("w", dir=self._images, prefix=".", delete=False) as file:
            json.dump(record.to_plain(), file)
        os.replace(file.name, path)

    def find(self, digest: str) -> ImageRecord | None:
        """An image that is complete; None if it is not here."""
        try:
            plain = json.loads((self._images / (hex_of(digest) + ".json")).read_text())
        except FileNotFoundError:
            return None
        record = ImageRecord.from_plain(plain)
        return record if all(map(self.has_layer, (*record.layers, *record.over))) else None

    def get(self, digest: str) -> ImageRecord:
        """The same, or `NotFound`."""
        record = self.find(digest)
        if record is None:
            raise NotFound(f"image {digest[:80]} is not on this node any more", hint="bake the template again")
        return record

    def records(self) -> list[tuple[float, ImageRecord]]:
        """Every image with the time of its last use, oldest use first."""
        found = []
        for path in self._images.glob("[0-9a-f]*.json"):
            try:
                found.append((path.stat().st_mtime, ImageRecord.from_plain(json.loads(path.read_text()))))
            except FileNotFoundError:
                continue
        return sorted(found, key=lambda item: item[0])

    def hold(self, record: ImageRecord) -> Hold:
        """Keep its layers, and note that it was used. Raises `NotFound`."""
        locks: list[int] = []
        try:
            for key in (*record.layers, *record.over):
                locks.append(fd := os.open(self._layers / hex_of(key) / "about.json", os.O_RDONLY | os.O_CLOEXEC))
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.utime(self._images / (hex_of(record.digest) + ".json"))
        except OSError:
            Hold(locks).close()
            raise NotFound(f"image {record.digest} is being removed", hint="bake the template again") from None
        return Hold(locks)

    def is_held(self, key: str) -> bool:
        """Whether somebody holds a layer."""
        try:
            fd = os.open(self._layers / hex_of(key) / "about.json", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def is_fresh(self, key: str) -> bool:
        """Whether a layer was made so lately that its image may still be in the making."""
        return is_fresh(self._layers / hex_of(key) / "about.json")

    def room(self) -> int:
        """How many bytes a layer may take of the disk, which is never filled to its end."""
        disk = os.statvfs(self.home)
        return max(0, disk.f_bavail * disk.f_frsize - min(_RESERVE, disk.f_blocks * disk.f_frsize // 20))

    def size(self) -> int:
        """About how many bytes all layers take."""
        return sum(weight(self.about(key)) for key in self.layers())

    def layers(self) -> list[str]:
        """Every layer that is here."""
        return ["sha256:" + path.parent.name for path in self._layers.glob("*/about.json")]

    def forget(self, record: ImageRecord) -> None:
        """Remove a record; layers go when no image has them."""
        (self._images / (hex_of(record.digest) + ".json")).unlink(missing_ok=True)

    def remove_layer(self, key: str) -> bool:
        """Remove a layer unless somebody holds it; whether it is gone."""
        path = self._layers / hex_of(key)
        return _remove_unlocked(path, self._partial / ("gone-" + secrets.token_hex(8)))


def is_fresh(path: Path) -> bool:
    """Whether it was changed within the last hour."""
    try:
        return time.time() - path.stat().st_mtime < FRESH_S
    except FileNotFoundError:
        return False


def weight(about: Mapping[str, Any]) -> int:
    """About how many bytes a layer takes on disk."""
    return int(about.get("size", 0)) + _ENTRY_BYTES * int(about.get("entries", 0))


def _remove_unlocked(path: Path, by: Path) -> bool:
    """Move a layer aside and remove it, unless it is locked."""
    try:
        lock = os.open(path / "about.json", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        remove_tree(path)
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        if by != path:
            path.rename(by)
        remove_tree(by)
        return True
    finally:
        os.close(lock)


def remove_tree(path: Path) -> None:
    """Remove a directory whatever is in it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        beneath.empty(fd)
    finally:
        os.close(fd)
    shutil.rmtree(path, ignore_errors=True)
