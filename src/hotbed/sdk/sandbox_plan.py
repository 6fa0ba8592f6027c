"""What both faces of a sandbox know about it: how it is made, and which one lives now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotbed.errors import NotFound, SandboxGone
from hotbed.sdk.programs import Determinism, EgressPolicy, Level, Seed, exec_request
from hotbed.wire.checks import egress_object, require, require_positive, seed_text
from hotbed.wire.execs import ExecRequest
from hotbed.wire.sandboxes import CreateSandbox, FileAnswer, FileEntry, SandboxCreated, SandboxRow


def sandbox_request(
    template: str,
    *,
    limits: Mapping[str, float] | None,
    ttl_s: float | None,
    idle_ttl_s: float | None,
    label: str | None,
    labels: Mapping[str, str] | None,
    group: str | None,
    seed: Seed | None,
    determinism: Determinism | None,
    min_isolation: Level | None,
    egress: EgressPolicy | None,
) -> CreateSandbox:
    """The wire form of a new sandbox."""
    require(isinstance(template, str), f"template must be a name, not {template!r}", "built-in: python, python-numpy")
    return CreateSandbox(
        template=template,
        limits=limits,
        ttl_s=ttl_s,
        idle_ttl_s=idle_ttl_s,
        label=label,
        labels=dict(labels or {}),
        group=group,
        seed=None if seed is None else seed_text(seed),
        determinism=determinism,
        min_isolation=min_isolation,
        egress=egress_object(egress),
    )


class SandboxPlan:
    """A sandbox's request, and the fork that stands for it at the moment."""

    def __init__(self, request: CreateSandbox, default_timeout: float) -> None:
        require_positive("default_timeout", default_timeout)
        self.request = request
        self.default_timeout = default_timeout
        self.id: str | None = None
        self.warm_hit = False
        self.fork_time_ms = 0.0
        self.isolation = ""
        self.seed = ""
        self._closed = False
        self._pid = 0

    def begin_with(self, snapshot: str) -> None:
        """Each fork of it is to start with a snapshot's files."""
        self.request = replace(self.request, snapshot=snapshot)

    def adopt(self, found: SandboxCreated | SandboxRow) -> None:
        """This fork is it now."""
        self.id = found.id
        self.warm_hit = found.warm_hit
        self.fork_time_ms = found.fork_time_ms
        self.isolation = found.isolation
        self.seed = found.seed
        self._closed = False
        self._pid = os.getpid()

    def let_go(self) -> str | None:
        """It is over: the id to end, or None when there is nothing to end or it is another process's."""
        ended, self.id = self.id, None
        self._closed = True
        return ended if self._pid == os.getpid() else None

    def needs_start(self) -> bool:
        """Whether first use has to fork it. Raises `SandboxGone` after `close`."""
        if self._closed:
            raise SandboxGone("this sandbox was closed", hint="use it inside `with`, or call start() or reset()")
        return self.id is None

    def live_id(self) -> str:
        """The id of the fork that runs."""
        if self.id is None:
            raise SandboxGone("this sandbox is not running", hint="enter it with `with`, or call start()")
        return self.id

    def exec_request(self, *, timeout_seconds: float | None, **given: Any) -> ExecRequest:
        """The wire form of an exec in it."""
        timeout = self.default_timeout if timeout_seconds is None else timeout_seconds
        return exec_request(timeout_seconds=timeout, **given)


def found_entry(answer: FileAnswer, path: str) -> FileEntry:
    """What stat found."""
    if answer.entry is None:
        raise NotFound(f"the node said nothing about {path}")
    return answer.entry
