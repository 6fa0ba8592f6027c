"""The secrets that a node holds for its sandboxes: a file in its home that only its user can read.

It is read when it is needed, so a value that was changed there is used from the next policy on. A tenant may name those
that list it; what does not list it is to it as if it did not exist.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hotbed.egress.secrets import Secret, secret_of
from hotbed.errors import InvalidRequest, NotSupported

log = logging.getLogger(__name__)

_SIZE_LIMIT = 1 << 20


class Secrets:
    """Of one node. None where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def named(self, names: Iterable[str], tenant: str | None = None) -> tuple[Secret, ...]:
        """Those of these names, all of which a tenant may name (None: whoever asks may). Raises `InvalidRequest`."""
        wanted = tuple(names)
        known = self._known(tenant) if wanted else {}
        found = []
        for name in wanted:
            secret = known.get(name)
            if secret is None or (tenant and not {tenant, "*"} & set(secret.tenants)):
                where = "its operator says which there are" if tenant else f"they are named in {self._path}"
                raise InvalidRequest(f"egress: this node holds no secret {name[:64]!r} for you", hint=where)
            found.append(secret)
        return tuple(found)

    def all(self) -> tuple[Secret, ...]:
        """Every one there is. Raises `InvalidRequest` for a file that is not as it should be."""
        try:
            data, trouble = _read(self._path) if self._path is not None else (b"{}", "")
        except FileNotFoundError:
            return ()
        if trouble:
            raise InvalidRequest(trouble, hint=f"chmod 600 {self._path}")
        return tuple(secret_of(name, item) for name, item in _given(str(self._path), data).items())

    def mistakes(self) -> list[str]:
        """All that is wrong with the file, without anything of a value; `FileNotFoundError` when there is none."""
        if self._path is None:
            return []
        data, trouble = _read(self._path)
        found = [f"{trouble}: chmod 600 {self._path}"] if trouble else []
        try:
            given = _given(str(self._path), data)
        except InvalidRequest as error:
            return [*found, error.message]
        for name, item in given.items():
            try:
                secret_of(name, item)
            except InvalidRequest as error:
                found.append(f"{error.message} ({error.hint})" if error.hint else error.message)
        return found

    def _known(self, tenant: str | None) -> Mapping[str, Secret]:
        try:
            return {secret.name: secret for secret in self.all()}
        except InvalidRequest as error:
            if not tenant:
                raise
            log.error("event=secrets_unreadable message=%r", error.message)
            hint = "its operator finds out why with `hotbed secrets check`"
            raise NotSupported("egress: the secrets of this node cannot be read", hint=hint) from None


def _read(path: Path) -> tuple[bytes, str]:
    """The file, and whether somebody else could have read it, too."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077 and found.st_uid == os.geteuid()
        data = file.read(_SIZE_LIMIT + 1) if stat.S_ISREG(found.st_mode) else b""
    return data, "" if private else f"{path} is not this node's alone to read"


def _given(path: str, data: bytes) -> dict[str, Any]:
    """What stands there under each name. A decoder's own message may show what it read, so none is passed on."""
    if len(data) > _SIZE_LIMIT:
        raise InvalidRequest(f"{path} is larger than {_SIZE_LIMIT >> 20} MiB")
    try:
        given = json.loads(data, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{path} is no JSON at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise InvalidRequest(f"{path} is no JSON: it is not UTF-8") from None
    if not isinstance(given, dict):
        raise InvalidRequest(f"{path} is no JSON object of secrets by name")
    return given


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two that have one name, which is meant?"""
    found = dict(pairs)
    if len(found) != len(pairs):
        name = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise InvalidRequest(f"{name[:64]!r} stands twice in one object of the secrets")
    return found
