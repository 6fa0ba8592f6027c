"""Having a sandbox trust the node for hosts whose TLS is read: a file, and variables that name it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Literal, Protocol

BUNDLE = "/tmp/.hotbed-ca.pem"
VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
)


class Trusting(Protocol):
    """A sandbox, as far as this goes."""

    environ: Mapping[str, str]

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a file in it."""
        ...


async def trust(box: Trusting, bundle: bytes) -> None:
    """From now on, what runs in the sandbox trusts what is in the bundle. Programs that run already do not."""
    fd, _ = await box.open(BUNDLE, "w")
    await asyncio.to_thread(_fill, fd, bundle)
    box.environ = dict.fromkeys(VARIABLES, BUNDLE)


def _fill(fd: int, bundle: bytes) -> None:
    with os.fdopen(fd, "wb") as file:
        file.write(bundle)
