"""The process that builds one image, and ends with it or with the node.

A node never forks and never blocks, so this is a fork of its launcher: it reads sources, runs skopeo, has each layer
unpacked by a child without rights (`laying`), and keeps what is complete. It is asked for one thing, on one socket:

    {"op": "import", "source": ...}      unpack an image; layers that are here already are not read again
    {"op": "install", "packages": ...}   Python packages, into a folder
    {"op": "extend", "parent": ...}      one more layer, which a descriptor yields, over an image that is here

and answers `progress` now and then, then `done` with a record, or `failed`. When nobody hears it any more, it ends.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from hotbed.errors import Error, NoSpace
from hotbed.guest import frames
from hotbed.runtime.images import laying, making, manifests, sources
from hotbed.runtime.images.laying import Corrupt
from hotbed.runtime.images.manifests import BadImage, Blob, Manifest
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.registry import Registry
from hotbed.runtime.images.store import Partial, Store
from hotbed.runtime.images.streams import BadBlob, TooMuch
from hotbed.runtime.linux import beneath, mounts
from hotbed.runtime.linux.identity import Ids

MESSAGE_LIMIT = 1 << 17
_EVERY_S = 0.1
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Mason:
    """One job."""

    def __init__(self, node: socket.socket, job: Mapping[str, Any], stream: int | None) -> None:
        self._node = node
        self._job = job
        self._stream = stream
        self._store = Store(Path(job["store"]))
        self._ids = Ids(**job["ids"])
        self._told_s = 0.0
        self._so_far, self._at = 0, 0  # bytes: of the layers before, and by now
        self._about: dict[str, Any] = {}

    def answer(self) -> dict[str, Any]:
        """Do it; what to tell of it."""
        return self.install() if self._job["op"] == "install" else {"record": self.work().to_plain()}

    def work(self) -> ImageRecord:
        """Do it. Raises `BadImage`, `BadBlob`, `Error`, OSError."""
        self._store.prepare()
        if self._job["op"] == "extend":
            return self._extend(ImageRecord.from_plain(self._job["parent"]))
        source = sources.parse(self._job["source"])
        if source.kind == "deb":
            return self._make(source)
        if source.kind != "registry":
            return self._build(source, manifests.read(source))
        return self._pull(source)

    def _make(self, source: sources.Source) -> ImageRecord:
        """Of Debian packages, once: what was made stays as it is."""
        if made := [record for _, record in self._store.records() if record.source == str(source)]:
            return made[-1]
        self._about = {"step": "installing packages"}
        tar = self._store.downloads / f"debian-{os.getpid()}.tar"
        try:
            making.debian_root(source.place.split(","), tar, self._tick)
            return self._build(source, manifests.of_rootfs(str(tar)))
        finally:
            tar.unlink(missing_ok=True)

    def install(self) -> dict[str, Any]:
        """Python packages in a folder."""
        self._store.prepare()
        target = Path(self._job["target"])
        with self._store.turns.turn(f"packages-{target.name}", self._tick):
            making.python_packages(self._job["packages"], target, self._tick)
        return {}

    def _pull(self, source: sources.Source) -> ImageRecord:
        """From a registry. A blob that is not what its digest says is fetched once more."""
        self._about = {"step": "fetching"}
        self._tick(0)
        stranger = self._ids if self._job.get("stranger") else None
        registry = Registry(source.place, self._store.downloads, stranger, self._tick)
        wanted = registry.config_digest()
        if (known := self._store.find(wanted)) is not None:
            return known
        with self._store.turns.turn(registry.folder.name, self._tick):
            return self._store.find(wanted) or self._fetch(source, registry)

    def _fetch(self, source: sources.Source, registry: Registry) -> ImageRecord:
        manifest = registry.fetch()
        try:
            record = self._build(source, manifest)
        except Corrupt:
            for blob in manifest.layers:
                if not _is_intact(blob):
                    registry.drop(blob)
            record = self._build(source, registry.fetch())
        registry.clear()
        return record

    def _build(self, source: sources.Source, manifest: Manifest) -> ImageRecord:
        if manifest.digest and (known := self._store.find(manifest.digest)) is not None:
            return known
        keys: list[str] = []
        self._so_far = self._at = 0
        done, total = 0, sum(blob.length for blob in manifest.layers)
        for number, blob in enumerate(manifest.layers, 1):
            self._about = {"step": "unpacking", "layer": number, "layers": len(manifest.layers)}
            self._about.update(done=done, total=total)
            self._tick(0)
            keys.append(self._layer(blob, keys))
            self._so_far = self._at
            done += blob.length
        digest = manifest.digest or _digest_of("root", keys)
        record = ImageRecord(
            digest=digest,
            source=str(source),
            layers=tuple(keys),
            env=manifest.env,
            workdir=manifest.workdir,
            notes=manifest.notes,
            **self._sums(keys),
        )
        self._store.put(record)
        return record

    def _layer(self, blob: Blob, below: list[str]) -> str:
        """The key of a layer, which is here then.

        One that leaves out folders it puts files in takes these from the layers below, so it is kept for these alone.
        """
        if not blob.diff_id:
            return self._lay(blob, below)
        keys = (blob.diff_id, _digest_of("over", [*below, blob.diff_id]))
        with self._store.turns.turn(blob.diff_id, self._tick):
            here = next(filter(self._store.has_layer, keys), None)
            return here or self._lay(blob, below)

    def _lay(self, blob: Blob, below: list[str]) -> str:
        sums = self._sums(below)
        share, entries = self._job["bytes"] - sums["size"], self._job["entries"] - sums["entries"]
        room = self._store.room()
        partial = self._begin()
        try:
            found = laying.lay(blob, partial.tree, self._ids, most=min(share, room), entries=entries, tick=self._tick)
            key = found["diff_id"]
            if found["implicit"] and below:
                self._inherit(partial, found["implicit"], below)
                key = _digest_of("over", [*below, key])
        except BaseException as error:
            self._store.discard(partial)
            if isinstance(error, TooMuch) and room < share:
                raise NoSpace(f"the disk has no room for the image: {error}") from None
            raise
        self._store.commit(partial, key, {name: found[name] for name in ("size", "entries", "skipped")})
        return str(key)

    def _inherit(self, partial: Partial, folders: list[str], below: list[str]) -> None:
        """Give folders that a layer did not describe the modes and times that they have below it."""
        for name in reversed(folders):
            for key in reversed(below):
                found = _look_below(self._store.layer(key), name)
                if found is None:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    fd = beneath.openat2(partial.tree, name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    os.fchmod(fd, stat.S_IMODE(found.st_mode) & 0o1777)
                    os.utime(fd, ns=(found.st_mtime_ns,) * 2)
                    os.close(fd)
                break

    def _extend(self, parent: ImageRecord) -> ImageRecord:
        """Another layer over an image, as a sandbox has saved it. Its key covers all that went in."""
        assert self._stream is not None
        key = _digest_of("setup", [parent.digest, self._job["recipe"]])
        self._about = {"step": "keeping"}
        if not self._store.has_layer(key):
            partial = self._begin()
            try:
                found = laying.lay_saved(
                    self._stream,
                    partial.tree,
                    self._ids,
                    most=self._job["bytes"],
                    entries=self._job["entries"],
                    mounted=frozenset(self._job["mounted"]),
                )
            except BaseException:
                self._store.discard(partial)
                raise
            self._store.commit(partial, key, {name: found[name] for name in ("size", "entries", "skipped")})
        over = (*parent.over, key)
        record = replace(parent, digest=key, over=over, **self._sums([*parent.layers, *over]))
        self._store.put(record)
        return record

    def _begin(self) -> Partial:
        return self._store.begin((self._ids.uid, self._ids.gid) if os.geteuid() == 0 else None)

    def _sums(self, keys: list[str]) -> dict[str, Any]:
        abouts = [self._store.about(key) for key in keys]
        skipped: Counter[str] = Counter()
        for about in abouts:
            skipped.update(about["skipped"])
        return {
            "size": sum(about["size"] for about in abouts),
            "entries": sum(about["entries"] for about in abouts),
            "skipped": dict(skipped),
        }

    def _tick(self, at: int) -> None:
        """Tell how far it is, now and then. Nobody there to hear it ends the process."""
        self._at = max(self._at, self._so_far + at)
        now = time.monotonic()
        if now - self._told_s > _EVERY_S:
            self._told_s = now
            say(self._node, {"op": "progress", **self._about, "at": self._at})


def _digest_of(kind: str, parts: list[str]) -> str:
    return "sha256:" + hashlib.sha256("\n".join([kind, *parts]).encode()).hexdigest()


def _look_below(tree: Path, name: str) -> os.stat_result | None:
    top = os.open(tree, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = beneath.openat2(top, name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        os.close(top)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _is_intact(blob: Blob) -> bool:
    """Whether a blob is what its digest says."""
    with open(blob.path, "rb") as file:
        found = hashlib.sha256()
        while data := file.read(1 << 20):
            found.update(data)
    return blob.digest == "sha256:" + found.hexdigest()


def say(node: socket.socket, message: Mapping[str, Any]) -> None:
    """One message to the node; if it is gone, so is what this process is for."""
    try:
        node.send(json.dumps(message).encode())
    except OSError:
        os._exit(0)


def failure(error: BaseException) -> dict[str, Any]:
    """How a failure is told."""
    if isinstance(error, Error):
        return {"op": "failed", "code": error.code, "message": error.message, "hint": error.hint}
    if isinstance(error, TooMuch):
        hint = "the setting images_mib says what all images together may take"
        return {"op": "failed", "code": "bad_image", "message": f"the image is too large: {error}", "hint": hint}
    if isinstance(error, OSError):
        code = "no_space" if error.errno in _FULL else "bad_image"
        return {"op": "failed", "code": code, "message": f"{error.strerror}: {error.filename or ''}".rstrip(": ")}
    return {"op": "failed", "code": "bad_image", "message": str(error)}


def run(node: socket.socket) -> NoReturn:
    """Serve one job on the inherited socket."""
    try:
        with suppress(PermissionError):  # who may not, starts nothing that mounts anything where it is seen
            mounts.own_namespace()  # so that what programs mount (mmdebstrap does) goes with them, also when killed
        data, ancillary, _, _ = node.recvmsg(MESSAGE_LIMIT, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        if data:
            fds = frames.unpack_fds(ancillary)
            try:
                mason = Mason(node, json.loads(data), fds[0] if fds else None)
                say(node, {"op": "done", **mason.answer()})
            except (Error, BadImage, BadBlob, beneath.BadName, TooMuch, OSError) as error:
                say(node, failure(error))
    finally:
        os._exit(0)
