"""What an image consists of, read from where it is: an OCI layout, a `docker save` archive, a root tar or directory.

Whatever is read here was written by others: sizes are bounded before anything is loaded, digests become file names only
after they were checked, and the content of each blob is held against its digest (here, or when it is unpacked).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotbed.runtime.images import names
from hotbed.runtime.images.record import hex_of
from hotbed.runtime.images.sources import Source
from hotbed.runtime.images.streams import BadBlob

_JSON_LIMIT = 8 << 20
_MEMBERS_LIMIT = 100_000
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_REF_NAME = "org.opencontainers.image.ref.name"


class BadImage(ValueError):
    """An image that cannot be used: it is broken, of another machine, or not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A layer's bytes: a part of a file, or (`path` is a directory) a tree yet to be packed."""

    path: str
    offset: int = 0
    length: int = 0
    digest: str = ""
    diff_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """An image: its layers, the lowest first, and what of its config we honour. `digest` is that of the config."""

    digest: str
    layers: tuple[Blob, ...]
    env: tuple[tuple[str, str], ...] = ()
    workdir: str = ""
    notes: tuple[str, ...] = field(default=())


def architecture() -> str:
    """This machine's, in the words of images."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def read(source: Source) -> Manifest:
    """The manifest of a local source. Raises `BadImage`, `BadBlob`, OSError."""
    if source.kind == "oci":
        return of_layout(source.place, source.tag)
    if source.kind == "docker-archive":
        return of_docker_archive(source.place, source.tag)
    return of_rootfs(source.place)


def of_rootfs(path: str) -> Manifest:
    """A root directory, or a tar of one, is an image of one layer."""
    path = os.path.realpath(path)
    length = 0 if os.path.isdir(path) else os.stat(path).st_size
    return Manifest(digest="", layers=(Blob(path=path, length=length),))


def of_layout(folder: str, tag: str) -> Manifest:
    """One image of an OCI layout (image-spec, image-layout.md)."""
    if not os.path.isfile(os.path.join(folder, "oci-layout")):
        raise BadImage(f"{folder} is no OCI layout: it has no file oci-layout")
    index = _json(_read_file(os.path.join(folder, "index.json"), _JSON_LIMIT))
    manifest = _pick(folder, _list(index, "manifests"), tag)
    config_blob = _descriptor(manifest.get("config"))
    config = _read_blob(folder, config_blob)
    layers = [_descriptor(item) for item in _list(manifest, "layers")]
    blobs = [
        Blob(path=_blob_path(folder, item["digest"]), length=int(item["size"]), digest=item["digest"])
        for item in layers
    ]
    return _with_config(config_blob["digest"], config, blobs)


def _pick(folder: str, manifests: Sequence[Any], tag: str) -> Mapping[str, Any]:
    """The manifest of a tag, for this machine; an index leads to further ones."""
    if tag:
        manifests = [m for m in manifests if _names(m) & {tag, tag.rpartition(":")[2]}] or [
            m for m in manifests if isinstance(m, dict) and m.get("digest") == tag
        ]
    if not manifests:
        raise BadImage(f"{folder} has no image {tag!r}" if tag else f"{folder} has no image")
    found = [_descriptor(m) for m in manifests]
    fitting = [m for m in found if _fits(m.get("platform"))]
    if not fitting:
        have = sorted({str((m.get("platform") or {}).get("architecture")) for m in found})
        raise BadImage(f"the image is for {', '.join(have)}, and this machine is {architecture()}")
    named = {name for m in fitting for name in _names(m)}
    if len(fitting) > 1 and not tag and len(named) > 1:
        raise BadImage(f"{folder} has several images; add one of :{', :'.join(sorted(named)[:20])}")
    chosen: Mapping[str, Any] = _json(_read_blob(folder, fitting[0]))
    if fitting[0].get("mediaType") in _INDEXES or "manifests" in chosen:
        return _pick(folder, _list(chosen, "manifests"), "")
    return chosen


def _names(manifest: Any) -> set[str]:
    notes = manifest.get("annotations") if isinstance(manifest, dict) else None
    return {str(notes[_REF_NAME])} if isinstance(notes, dict) and _REF_NAME in notes else set()


def _fits(wanted: Any) -> bool:
    if not isinstance(wanted, dict) or "architecture" not in wanted:
        return True
    return bool(wanted["architecture"] == architecture() and wanted.get("os", "linux") == "linux")


def of_docker_archive(path: str, tag: str) -> Manifest:
    """One image of what `docker save` wrote. Only the headers are read here; layers stay where they are."""
    try:
        with tarfile.open(path, "r:") as archive:
            members = _members(archive)
            manifest = _chosen(_json(_member(archive, members, "manifest.json")), tag, path)
            config_name = str(manifest.get("Config", ""))
            config = _member(archive, members, config_name)
            places = [_layer_member(members, str(name)) for name in _list(manifest, "Layers")]
    except tarfile.ReadError as error:
        hint = " (a compressed one has to be unpacked first)" if _is_compressed(path) else ""
        raise BadImage(f"{path} is no archive of docker save: {error}{hint}") from None
    digest = "sha256:" + hashlib.sha256(config).hexdigest()
    stem = config_name.rpartition("/")[2].removesuffix(".json")
    if len(stem) == 64 and stem != hex_of(digest):
        raise BadBlob(f"the image's config is {digest}, and is called {stem}")
    return _with_config(digest, config, [Blob(path=path, offset=at, length=size) for at, size in places])


def _is_compressed(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4)[:2] in (b"\x1f\x8b", b"\x28\xb5", b"BZ", b"\xfd7")


def _members(archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    for member in archive:
        found[os.path.normpath(member.name)] = member
        if len(found) > _MEMBERS_LIMIT:
            raise BadImage("the archive has more members than an image needs")
    return found


def _member(archive: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], name: str) -> bytes:
    member = members.get(os.path.normpath(name))
    file = archive.extractfile(member) if member is not None and member.isreg() else None
    if member is None or file is None:
        raise BadImage(f"the archive has no file {name!r}")
    if member.size > _JSON_LIMIT:
        raise BadImage(f"{name} is too large for what it is")
    return file.read()


def _layer_member(members: Mapping[str, tarfile.TarInfo], name: str) -> tuple[int, int]:
    """Where a layer is; an old `docker save` makes a repeated one a link."""
    for _ in range(8):
        member = members.get(os.path.normpath(name))
        if member is None:
            raise BadImage(f"the archive has no layer {name!r}")
        if member.isreg():
            return member.offset_data, member.size
        name = os.path.join(os.path.dirname(name), member.linkname) if member.issym() else member.linkname
    raise BadImage(f"layer {name!r} is a chain of links")


def _chosen(manifests: Any, tag: str, path: str) -> Mapping[str, Any]:
    if not isinstance(manifests, list) or not all(isinstance(item, dict) for item in manifests) or not manifests:
        raise BadImage(f"{path}: manifest.json lists no image")
    if not tag:
        if len(manifests) > 1:
            raise BadImage(f"{path} has {len(manifests)} images; add :NAME:TAG")
        return dict(manifests[0])
    named = {names.whole(name): item for item in manifests for name in _names_in(item.get("RepoTags"))}
    if names.whole(tag) not in named:
        raise BadImage(f"{path} has no image {tag!r}; it has {', '.join(sorted(named)[:20]) or 'none with a name'}")
    return dict(named[names.whole(tag)])


def _names_in(tags: object) -> list[str]:
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _with_config(digest: str, text: bytes, blobs: Sequence[Blob]) -> Manifest:
    config = _json(text)
    if not _fits(config):
        raise BadImage(f"the image is for {config.get('architecture')!r}, and this machine is {architecture()}")
    rootfs = config.get("rootfs")
    diff_ids = [str(item) for item in _list(rootfs, "diff_ids")] if isinstance(rootfs, dict) else []
    if len(diff_ids) != len(blobs):
        raise BadImage(f"the image has {len(blobs)} layers, and its config tells of {len(diff_ids)}")
    run = config.get("config") if isinstance(config.get("config"), dict) else {}
    assert isinstance(run, dict)
    return Manifest(
        digest=digest,
        layers=tuple(
            Blob(path=b.path, offset=b.offset, length=b.length, digest=b.digest, diff_id=d)
            for b, d in zip(blobs, diff_ids, strict=True)
        ),
        env=tuple(_variables(run.get("Env"))),
        workdir=str(run.get("WorkingDir") or ""),
        notes=tuple(_ignored(run)),
    )


def _variables(lines: Any) -> list[tuple[str, str]]:
    pairs = [str(line).partition("=") for line in lines or () if "\0" not in str(line)]
    return sorted({name: value for name, equals, value in pairs if name and equals}.items())


def _ignored(run: Mapping[str, Any]) -> list[str]:
    """What the config asks for and a sandbox does not give."""
    notes = []
    if run.get("User") not in (None, "", "0", "root", "0:0", "root:root"):
        notes.append(f"USER {str(run['User'])[:80]} is not honoured: a sandbox has one user, who is root inside")
    for key in ("Entrypoint", "Cmd", "Volumes", "ExposedPorts"):
        if run.get(key):
            notes.append(f"{key.upper()} is not honoured")
    return notes


def _blob_path(folder: str, digest: str) -> str:
    return os.path.join(folder, "blobs", "sha256", hex_of(digest))


def _read_blob(folder: str, descriptor: Mapping[str, Any]) -> bytes:
    data = _read_file(_blob_path(folder, descriptor["digest"]), _JSON_LIMIT)
    found = "sha256:" + hashlib.sha256(data).hexdigest()
    if found != descriptor["digest"]:
        raise BadBlob(f"blob {descriptor['digest']} has the content of {found}")
    return data


def _read_file(path: str, most: int) -> bytes:
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise BadImage(f"{path} is too large for what it is")
    return data


def _descriptor(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("digest"), str) or not isinstance(item.get("size"), int):
        raise BadImage("a descriptor of the image has no digest and size")
    hex_of(item["digest"])
    return item


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadImage(f"what should be JSON is not: {error}") from None


def _list(value: Any, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise BadImage(f"the image has no list of {key}")
    return found
