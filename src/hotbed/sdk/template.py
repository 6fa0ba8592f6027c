"""Templates as their users meet them: baked once, forked ever after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hotbed.errors import BakeFailed, DeadlineExceeded
from hotbed.sdk import template_calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.connect import alink_of, link_of
from hotbed.sdk.transport import Link
from hotbed.wire.templates import Ready, TemplateRow

BAKE_TIMEOUT_S = 3600.0
_POLL_S = 0.1
_FINAL = ("Live", "Failed")

OnRow = Callable[[TemplateRow], Any]


class Template:
    """One template of a node. Its name is what `Sandbox` and `rollout_once` take; it stays when the client goes."""

    def __init__(self, link: Link, row: TemplateRow) -> None:
        self._link = link
        self.row = row

    @property
    def name(self) -> str:
        """What sandboxes are made of."""
        return self.row.name

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {self.row.phase})"

    @classmethod
    def bake(
        cls,
        client: AnyClient | None = None,
        *,
        name: str,
        image: str = "host",
        setup: Sequence[str] = (),
        preload: Sequence[str] = (),
        ready: Ready | None = None,
        warm_cmd: str = "",
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
        egress: str | Mapping[str, Any] | None = None,
        width: int = 1,
        timeout_s: float = BAKE_TIMEOUT_S,
        on_progress: OnRow = lambda row: None,
    ) -> Template:
        """Make a template and wait until it is live. The same name and content again is the same template.

        `image` is host, template:NAME, oci:DIR[:TAG], docker-archive:FILE, rootfs:PATH (a directory or a tar), or a
        registry's NAME[:TAG]. `setup` commands run once, in a sandbox over it, and what they change is part of the
        template. `preload` are Python modules that are imported already. `warm_cmd` runs `code` in another language: a
        command that reads a program on stdin, as "ruby -". `ready` says when a sandbox of it is. `egress` is what
        setup, and its sandboxes, may reach. Raises `BakeFailed` with what went wrong; after `timeout_s`,
        `DeadlineExceeded`, and the bake goes on.
        """
        link = link_of(client)
        asked = template_calls.described(
            name, image, preload, env, limits, egress, setup=setup, ready=ready, warm_cmd=warm_cmd, width=width
        )
        template = cls(link, link.send(template_calls.create(asked)))
        return template.wait(timeout_s=timeout_s, on_progress=on_progress)

    @classmethod
    async def abake(
        cls,
        client: AnyClient | None = None,
        *,
        name: str,
        image: str = "host",
        setup: Sequence[str] = (),
        preload: Sequence[str] = (),
        ready: Ready | None = None,
        warm_cmd: str = "",
        env: Mapping[str, str] | None = None,
        limits: Mapping[str, float] | None = None,
        egress: str | Mapping[str, Any] | None = None,
        width: int = 1,
        timeout_s: float = BAKE_TIMEOUT_S,
        on_progress: OnRow = lambda row: None,
    ) -> Template:
        """The same for asyncio."""
        link = await alink_of(client)
        asked = template_calls.described(
            name, image, preload, env, limits, egress, setup=setup, ready=ready, warm_cmd=warm_cmd, width=width
        )
        template = cls(link, await link.asend(template_calls.create(asked)))
        deadline = time.monotonic() + timeout_s
        while not template.is_final(on_progress, deadline):
            await asyncio.sleep(_POLL_S)
            template.row = await link.asend(template_calls.get(name))
        return template

    def wait(self, *, timeout_s: float = BAKE_TIMEOUT_S, on_progress: OnRow = lambda row: None) -> Template:
        """Wait until it is live. `on_progress` is told how far it is, again and again. Raises as `bake` does."""
        deadline = time.monotonic() + timeout_s
        while not self.is_final(on_progress, deadline):
            time.sleep(_POLL_S)
            self.status()
        return self

    def is_final(self, on_progress: OnRow, deadline: float) -> bool:
        """Whether it is live now. Raises `BakeFailed`, and `DeadlineExceeded` past the deadline."""
        on_progress(self.row)
        if self.row.phase == "Failed":
            raise BakeFailed(f"template {self.name}: {self.row.error}")
        if self.row.phase != "Live" and time.monotonic() > deadline:
            raise DeadlineExceeded(f"template {self.name} is still {self.row.phase}", hint="the bake goes on")
        return self.row.phase == "Live"

    def status(self) -> TemplateRow:
        """How far it is now."""
        self.row = self._link.send(template_calls.get(self.name))
        return self.row

    def delete(self) -> None:
        """Forget it, or give up its bake. Refused while sandboxes of it live."""
        self._link.send(template_calls.delete(self.name))
