"""Fetching an image from a registry, by skopeo, into an OCI layout of our own.

skopeo speaks the registries' protocols, mirrors and credentials better than we ever would; we believe nothing it
writes before it has been held against its digest. A caller who is not this machine's user gets none of its user's
credentials.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hotbed.runtime.images import manifests, names, programs
from hotbed.runtime.images.manifests import BadImage
from hotbed.runtime.linux.identity import Ids

_ANSWER_LIMIT = 8 << 20
_ASK_TIMEOUT_S = 60.0
_FETCH_TIMEOUT_S = 3600.0
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_TAG = "image"
_CONTAINERS = Path("/run/containers")


def _closed(path: Path) -> bool:
    """Whether a directory is there, and this process's user may not enter it."""
    return path.exists() and not os.access(path, os.X_OK)


class Registry:
    """One image in a registry. `ids` is who fetches, if that is not to be this process's user."""

    def __init__(self, reference: str, downloads: Path, ids: Ids | None, tick: Callable[[int], Any]) -> None:
        self._reference = reference
        self._ids = ids
        self._tick = tick
        key = hashlib.sha256(f"{reference} {ids is not None}".encode()).hexdigest()[:32]
        self.folder = downloads / key
        self._insecure = names.host_of(reference).partition(":")[0] in _LOOPBACK

    def config_digest(self) -> str:
        """The digest of the image's config, without fetching its layers. Raises `BadImage`."""
        found = self._run(["inspect", "--config", "--raw", *self._flags(""), self._url()], _ASK_TIMEOUT_S)
        return "sha256:" + hashlib.sha256(found).hexdigest()

    def fetch(self) -> manifests.Manifest:
        """Have it in the folder; what is there already is not fetched again. Raises `BadImage`."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self._ids is not None and os.geteuid() == 0:
            os.chown(self.folder, self._ids.uid, self._ids.gid)
        target = f"oci:{self.folder}:{_TAG}"
        self._run(["copy", "--quiet", *self._flags("src-"), self._url(), target], _FETCH_TIMEOUT_S)
        return manifests.of_layout(str(self.folder), _TAG)

    def drop(self, blob: manifests.Blob) -> None:
        """Remove a blob that is not what it should be, so that the next `fetch` brings another."""
        Path(blob.path).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all that was fetched."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _url(self) -> str:
        return "docker://" + self._reference

    def _flags(self, prefix: str) -> list[str]:
        flags = [f"--{prefix}tls-verify=false"] if self._insecure else []
        return [*flags, f"--{prefix}no-creds"] if self._ids is not None else flags

    def _run(self, arguments: Sequence[str], timeout_s: float) -> bytes:
        """Run skopeo to its end; what it printed. It is killed when the job is given up (`tick` raises)."""
        path = shutil.which("skopeo")
        if path is None:
            raise BadImage("fetching from a registry needs skopeo, which is not installed (apt-get install skopeo)")
        if self._ids is not None and os.geteuid() == 0:
            who: dict[str, Any] = {"user": self._ids.uid, "group": self._ids.gid, "extra_groups": [], "cwd": "/"}
            who["env"] = {"PATH": os.defpath, "HOME": "/nonexistent", "TMPDIR": str(self.folder)}
        else:
            who = {"env": self._own_environment()}
        command = [path, "--insecure-policy", *arguments]  # a policy is about signatures; digests are checked here
        ended = programs.run(command, tick=lambda: self._tick(self._arrived()), patience_s=timeout_s, **who)
        if ended.returncode != 0:
            raise BadImage(f"skopeo: {ended.stderr.decode(errors='replace').strip()[-600:] or ended.returncode}")
        return ended.stdout[:_ANSWER_LIMIT]

    def _own_environment(self) -> dict[str, str]:
        """This process's, for who fetches as this process's user.

        Where no session set XDG_RUNTIME_DIR, skopeo looks for logins in /run/containers, and gives up when root's own
        skopeo made that for itself alone. It gets a directory without any, and goes on to those in the user's home.
        """
        if "XDG_RUNTIME_DIR" in os.environ or not _closed(_CONTAINERS):
            return dict(os.environ)
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.folder.parent)}

    def _arrived(self) -> int:
        """About how many bytes have come."""
        total = 0
        for path in self.folder.rglob("*"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
        return total
