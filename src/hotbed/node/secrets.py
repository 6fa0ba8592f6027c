"""The secrets that a node holds for its sandboxes: a file in its home that only its user can read.

It is read when it is needed, so a value that was changed there is used from the next policy on. A tenant may name those
that list it; what does not list it is to it as if it did not exist.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from hotbed.egress.secrets import Secret, secret_of
from hotbed.errors import InvalidRequest

_SIZE_LIMIT = 1 << 20


class Secrets:
    """Of one node. None where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def named(self, names: Iterable[str], tenant: str | None = None) -> tuple[Secret, ...]:
        """Those of these names, all of which a tenant may name (None: whoever asks may). Raises `InvalidRequest`."""
        wanted = tuple(names)
        known = self._read() if wanted else {}
        found = []
        for name in wanted:
            secret = known.get(name)
            if secret is None or (tenant and not {tenant, "*"} & set(secret.tenants)):
                where = "its operator says which there are" if tenant else f"they are named in {self._path}"
                raise InvalidRequest(f"egress: this node holds no secret {name[:64]!r} for you", hint=where)
            found.append(secret)
        return tuple(found)

    def _read(self) -> dict[str, Secret]:
        try:
            given = json.loads(_private_text(self._path)) if self._path is not None else {}
        except FileNotFoundError:
            return {}
        except ValueError:
            given = None  # the message of a decoder may show what it read
        if not isinstance(given, Mapping):
            raise InvalidRequest(f"{self._path} is no JSON object of secrets by name")
        return {str(name): secret_of(str(name), item) for name, item in given.items()}


def _private_text(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(fd, encoding="utf-8") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise InvalidRequest(f"{path} is not this node's alone to read", hint=f"chmod 600 {path}")
        return file.read(_SIZE_LIMIT)
