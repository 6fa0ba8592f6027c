"""Whole repositories: the candidate's files, everything it started killed, the hidden tests last, then the run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace

from hotbed.errors import Error, FileMissing, InvalidSpec, NotAFile, SandboxGone
from hotbed.grading.commands import REPORT_LIMIT, CommandPlan, Step, command_result, plan_of
from hotbed.grading.outputs import RunOutcome
from hotbed.grading.programs import CommandReward
from hotbed.grading.verdicts import GradeResult, infra_failure, spec_failure
from hotbed.node.grading.host import Host
from hotbed.node.grading.members import FILE_TROUBLE, Member, about_box, candidate_failure, check_names, lost_sandbox
from hotbed.node.grading.outputs import as_run
from hotbed.node.grading.pins import Pins
from hotbed.runtime.base import Box, ExecOutcome, ExecRequest

_KILL = b"kill -9 -1"
_SETUP_S = 600.0
_REMOVE = """
import json, os, sys
names, keep = json.load(sys.stdin)
folders = ["."]
while folders:
    folder = folders.pop()
    try:
        entries = list(os.scandir(folder))
    except OSError:
        continue  # nothing in it will be found by the tests either
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.path)
        elif entry.name in names and os.path.normpath(entry.path) not in keep:
            try:
                os.unlink(entry.path)
            except PermissionError:  # its folder may not be written to
                os.chmod(folder, 0o755)
                os.unlink(entry.path)
"""


async def judge_repository(host: Host, spec: CommandReward, member: Member) -> GradeResult:
    """The result of one candidate."""
    begun = time.monotonic()
    try:
        check_names(member.candidate)
        plan = plan_of(spec, member.candidate)
        async with host.sandbox(spec.limits, seed=member.seed, determinism=member.determinism) as held:
            steps = Steps(held.box, plan, member)
            result = await steps.judge(spec)
            result = about_box(result, held.box, total_ms=round((time.monotonic() - begun) * 1e3, 3))
            return steps.pins.on(result)
    except InvalidSpec as error:
        return spec_failure(str(error))
    except FILE_TROUBLE as error:
        return candidate_failure(f"files cannot be placed where the candidate has been: {error}")
    except SandboxGone as error:
        return lost_sandbox(str(error))
    except (Error, OSError) as error:
        return infra_failure(f"the candidate could not be graded: {error}")


class Steps:
    """Carries out one plan in one sandbox."""

    def __init__(self, box: Box, plan: CommandPlan, member: Member) -> None:
        self._box = box
        self._plan = plan
        self._member = member
        self.pins = Pins(member)

    async def judge(self, spec: CommandReward) -> GradeResult:
        """Do what comes before, run the tests, read their report."""
        for step in self._plan.before:
            outcome = await self._do(step)
            if outcome.status != "ok" and not step.kill:
                return _stopped(spec, step, outcome)
        outcome = await self._exec(
            self._plan.command.encode(), env=self._plan.environment, timeout_s=self._plan.timeout_s
        )
        report = await self._report() if self._plan.report else None
        result = command_result(spec, as_run(outcome, 1 << 62), report)
        return replace(result, sandbox={"stdout": _tail(outcome.stdout), "stderr": _tail(outcome.stderr)})

    async def _do(self, step: Step) -> ExecOutcome:
        if step.write is not None:
            return await self._exec(b"true", files=step.write)
        if step.kill:
            return await self._exec(_KILL)
        if step.remove:
            names = json.dumps([step.remove, step.keep]).encode()
            return await self._exec(_REMOVE.encode(), kind_is_code=True, stdin=names)
        return await self._exec(step.run.encode(), timeout_s=_SETUP_S)

    async def _exec(
        self,
        program: bytes,
        *,
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        kind_is_code: bool = False,
    ) -> ExecOutcome:
        pinned = self._member.determinism != "none"
        outcome = await self._box.exec(
            ExecRequest(
                kind="code" if kind_is_code else "command",
                program=program,
                files=tuple(
                    (f"{self._plan.cwd}/{path}", text.encode("utf-8", "surrogatepass"), 0o644)
                    for path, text in (files or {}).items()
                ),
                env=env or {},
                stdin=stdin,
                cwd=self._plan.cwd,
                timeout_s=timeout_s,
                output_bytes=1 << 20,
                seed=bytes.fromhex(self._member.seed) if pinned else None,
                determinism=self._member.determinism if pinned else "none",
            )
        )
        self.pins.add(outcome.seed_ack, outcome.pinned)
        return outcome

    async def _report(self) -> bytes | None:
        """The report that the tests wrote, if it is a file of a size to be believed."""
        path = self._plan.report if self._plan.report.startswith("/") else f"{self._plan.cwd}/{self._plan.report}"
        try:
            fd, size = await self._box.open(path, "r")
        except (FileMissing, NotAFile):
            return None
        with os.fdopen(fd, "rb") as file:
            return file.read(REPORT_LIMIT) if size <= REPORT_LIMIT else None


def _stopped(spec: CommandReward, step: Step, outcome: ExecOutcome) -> GradeResult:
    """A step before the tests failed: the candidate's patch or setup, or the spec's own files."""
    told = _tail(outcome.stderr or outcome.stdout)
    if not step.is_candidate:
        return spec_failure(f"a step of the spec failed ({outcome.status}): {told}")
    failed = command_result(spec, RunOutcome(status="exit", exit_code=outcome.exit_code), None)
    return replace(failed, reward=0.0, status="candidate_error", reason=f"a step of the candidate failed: {told}")


def _tail(data: bytes) -> str:
    return data[-4096:].decode("utf-8", "replace")
