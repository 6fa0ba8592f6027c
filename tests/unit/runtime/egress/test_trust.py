"""Having a sandbox trust the node."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hotbed.runtime.egress.trust import BUNDLE, VARIABLES, trust


class Box:
    """A sandbox with one file."""

    def __init__(self, file: Path) -> None:
        self.environ: Mapping[str, str] = {}
        self._file = file

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """That one."""
        assert (path, mode) == (BUNDLE, "w")
        return os.open(self._file, os.O_CREAT | os.O_WRONLY, perm), 0


def test_programs_find_the_bundle_by_their_own_variables(tmp_path: Path) -> None:
    """Python's, curl's, Node's, git's, pip's."""
    box = Box(tmp_path / "bundle")
    asyncio.run(trust(box, b"certificates"))

    assert (tmp_path / "bundle").read_bytes() == b"certificates"
    assert {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} < set(box.environ) == set(VARIABLES)
    assert set(box.environ.values()) == {BUNDLE}
