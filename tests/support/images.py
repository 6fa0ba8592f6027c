"""Images made by hand, so that each test says what is in its own: layers as tars, OCI layouts, saved archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WHEN = 1_700_000_000
BUSYBOX = shutil.which("busybox")


def entry(name: str, content: bytes | None = None, **about: Any) -> tuple[tarfile.TarInfo, bytes]:
    """One entry: a folder without content, a file with it, or whatever `type` says."""
    info = tarfile.TarInfo(name)
    info.mtime = WHEN
    info.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    info.mode = 0o755 if content is None else 0o644
    info.size = len(content or b"")
    for key, value in about.items():
        setattr(info, key, value)
    return info, content or b""


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    """A symbolic link."""
    return entry(name, b"", type=tarfile.SYMTYPE, linkname=target)


def hard(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    """A hard link."""
    return entry(name, b"", type=tarfile.LNKTYPE, linkname=target)


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A layer's tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def busybox(*more: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A root that runs commands: one static program under many names."""
    assert BUSYBOX is not None
    names = ("sh", "ls", "cat", "id", "rm", "mkdir", "touch", "sleep", "stat", "find", "wc", "env", "sha256sum")
    programs = [hard(f"bin/{name}", "bin/busybox") for name in names]
    content = Path(BUSYBOX).read_bytes()
    return layer(
        entry("bin"),
        entry("bin/busybox", content, mode=0o755),
        *programs,
        entry("etc"),
        entry("tmp", mode=0o1777),
        *more,
    )


def config_of(layers: Sequence[bytes], *, architecture: str = "amd64", **run: Any) -> bytes:
    """An image's config."""
    rootfs = {"type": "layers", "diff_ids": [digest(tar) for tar in layers]}
    return json.dumps({"architecture": architecture, "os": "linux", "config": run, "rootfs": rootfs}).encode()


def digest(data: bytes) -> str:
    """Its content address."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layout:
    """An OCI layout in a folder, to which images are added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifests: list[Mapping[str, Any]] = []
        (folder / "blobs/sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data: bytes, media: str) -> dict[str, Any]:
        """Put a blob; its descriptor."""
        name = digest(data)
        self.path(name).write_bytes(data)
        return {"mediaType": media, "digest": name, "size": len(data)}

    def path(self, name: str) -> Path:
        """Where a blob is."""
        return self.folder / "blobs/sha256" / name.partition(":")[2]

    def add(self, layers: Sequence[bytes], tag: str = "latest", *, architecture: str = "amd64", **run: Any) -> str:
        """Put an image; the digest of its config."""
        config = config_of(layers, architecture=architecture, **run)
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob(config, "application/vnd.oci.image.config.v1+json"),
            "layers": [
                self.blob(gzip.compress(tar, 1, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
                for tar in layers
            ],
        }
        descriptor = self.blob(json.dumps(manifest).encode(), str(manifest["mediaType"]))
        descriptor["platform"] = {"architecture": architecture, "os": "linux"}
        descriptor["annotations"] = {"org.opencontainers.image.ref.name": tag}
        self._manifests.append(descriptor)
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self._manifests}))
        return digest(config)


def docker_archive(path: Path, layers: Sequence[bytes], tag: str = "a/b:latest", **run: Any) -> str:
    """What `docker save` writes; the digest of the config."""
    config = config_of(layers, **run)
    names = [f"{digest(tar)[7:]}/layer.tar" for tar in layers]
    name = digest(config)[7:] + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": names}]).encode()
    files = [entry(name, config), *(entry(n, tar) for n, tar in zip(names, layers, strict=True))]
    path.write_bytes(layer(*files, entry("manifest.json", manifest)))
    return digest(config)


def looks(top: Path) -> dict[str, Any]:
    """A tree as data: what each name is, with mode, time and content."""
    found: dict[str, Any] = {}
    for path in sorted(top.rglob("*")):
        about = path.lstat()
        what: Any = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (oct(about.st_mode), int(about.st_mtime), what)
    return found
