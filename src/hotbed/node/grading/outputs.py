"""Programs judged by their output: one sandbox per candidate, a fresh process per case, the comparison out here."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from hotbed.errors import Error, FileMissing, SandboxGone
from hotbed.grading import protocol
from hotbed.grading.outputs import Run, RunOutcome, runs_of, stdio_result
from hotbed.grading.programs import StdioReward
from hotbed.grading.verdicts import GradeResult, infra_failure, spec_failure
from hotbed.node.grading.host import Host
from hotbed.node.grading.judge import JudgeChannel
from hotbed.node.grading.members import FILE_TROUBLE, Member, about_box, candidate_failure, check_names, lost_sandbox
from hotbed.node.grading.pins import Pins
from hotbed.runtime.base import Box, ExecOutcome, ExecRequest

_CWD = "/work"
_SIGXCPU = 24
_TIMEOUTS = 3  # after so many runs that had to be killed the others are not tried
_FLOOD_FACTOR = 16  # a program that has written so many times what is kept is wrong whatever follows
_BUILD_FAILED = "the build failed"


async def judge_outputs(host: Host, spec: StdioReward, member: Member) -> GradeResult:
    """The result of one candidate."""
    begun = time.monotonic()
    try:
        check_names(member.candidate)
        async with host.sandbox(spec.limits, seed=member.seed, determinism=member.determinism) as held:
            driver = Driver(held.box, spec, member)
            result = await driver.judge(host)
            result = about_box(result, held.box, total_ms=round((time.monotonic() - begun) * 1e3, 3))
            return driver.pins.on(result)
    except FILE_TROUBLE as error:
        return candidate_failure(f"the candidate's files cannot be placed: {error}")
    except SandboxGone as error:
        return lost_sandbox(str(error))
    except (Error, OSError) as error:
        return infra_failure(f"the candidate could not be run: {error}")


class Driver:
    """Runs one candidate's cases in one sandbox."""

    def __init__(self, box: Box, spec: StdioReward, member: Member) -> None:
        self._box = box
        self._spec = spec
        self._member = member
        self._deadline = time.monotonic() + spec.limits.candidate_wall_s
        self._code = code_of(member, spec)
        self.pins = Pins(member)

    async def judge(self, host: Host) -> GradeResult:
        """Build, run every case, compare; ask the checker if the spec has one."""
        if self._spec.build:
            built = await self._exec(self._spec.build, self._files(), b"", self._spec.limits.candidate_wall_s)
            if built.status != "ok":
                told = (built.stderr or built.stdout)[-2000:].decode("utf-8", "replace")
                failed = [RunOutcome(status="exit", exit_code=built.exit_code) for _ in self._spec.stdio_cases]
                return replace(stdio_result(self._no_checker(), failed), reason=f"{_BUILD_FAILED}: {told}")
        outcomes = await self._outcomes()
        checked = await ask_checker(host, self._spec, outcomes) if self._spec.checker else []
        if isinstance(checked, str):
            return spec_failure(checked)
        return stdio_result(self._spec, outcomes, checked)

    def _no_checker(self) -> StdioReward:
        """The same cases without the checker: there is nothing to show it."""
        return StdioReward(cases=self._spec.stdio_cases, partial=self._spec.partial, limits=self._spec.limits)

    async def _outcomes(self) -> list[RunOutcome]:
        """Every case's; what hangs again and again has its remaining cases counted as hanging, too."""
        found: list[RunOutcome] = []
        timeouts = 0
        for run in runs_of(self._spec, self._code):
            hopeless = timeouts >= _TIMEOUTS
            found.append(RunOutcome(status="timeout", exit_code=None) if hopeless else await self._run(run))
            timeouts += found[-1].status == "timeout"
        return found

    async def _run(self, run: Run) -> RunOutcome:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return RunOutcome(status="timeout", exit_code=None)
        # `ulimit -t` counts whole seconds; the wall limit is what bounds a program that only sleeps.
        command = f"ulimit -t {max(1, math.ceil(run.cpu_s))}; {run.command}"
        outcome = await self._exec(command, self._files(), run.stdin, min(run.timeout_s, left), run.output_bytes)
        return as_run(outcome, run.output_bytes)

    def _files(self) -> tuple[tuple[str, bytes, int], ...]:
        files = (
            {self._spec.path: self._code} if isinstance(self._member.candidate, str) else dict(self._member.candidate)
        )
        return tuple((f"{_CWD}/{path}", text.encode("utf-8", "surrogatepass"), 0o644) for path, text in files.items())

    async def _exec(
        self,
        command: str,
        files: tuple[tuple[str, bytes, int], ...],
        stdin: bytes,
        timeout_s: float,
        kept: int = 1 << 16,
    ) -> ExecOutcome:
        pinned = self._member.determinism != "none"
        request = ExecRequest(
            kind="command",
            program=command.encode("utf-8", "surrogatepass"),
            files=files,
            stdin=stdin,
            cwd=_CWD,
            timeout_s=timeout_s,
            output_bytes=kept + 1,
            output_kill_bytes=_FLOOD_FACTOR * (kept + 1),
            seed=bytes.fromhex(self._member.seed) if pinned else None,
            determinism=self._member.determinism if pinned else "none",
        )
        outcome = await self._box.exec(request)
        self.pins.add(outcome.seed_ack, outcome.pinned)
        return outcome


def code_of(member: Member, spec: StdioReward) -> str:
    """The candidate's main file."""
    if isinstance(member.candidate, str):
        return member.candidate
    if spec.path not in member.candidate:
        raise FileMissing(f"there is no {spec.path}", hint="the spec's `path` names the main file")
    return member.candidate[spec.path]


def as_run(outcome: ExecOutcome, kept: int) -> RunOutcome:
    """An exec as the verdict reads it. Running out of CPU time is a timeout, however the shell reports it."""
    status: str = outcome.status
    if status == "signal" and outcome.signal == _SIGXCPU or status == "exit" and outcome.exit_code == 128 + _SIGXCPU:
        status = "timeout"
    if status in ("ok", "exit") and outcome.stdout_total > kept:
        status = "output"
    return RunOutcome(
        status=status, exit_code=outcome.exit_code, stdout=outcome.stdout, truncated=outcome.stdout_total > kept
    )


async def ask_checker(host: Host, spec: StdioReward, outcomes: list[RunOutcome]) -> list[bool] | str:
    """What the spec's checker says of each output, in a judge's sandbox; or why it cannot say."""
    running = await host.start("judge")
    judge = JudgeChannel(running.channel)
    try:
        header, body = protocol.check_frame("check", spec, outcomes)
        await judge.send(header, body, timeout_s=30.0)
        answer = await judge.receive(spec.limits.call_wall_s * len(outcomes) + 30.0)
        if answer is None:
            raise Error(f"the checker's judge gave no answer: {judge.ended}")
        return protocol.read_checked(answer, len(outcomes))
    finally:
        judge.close()
        running.end()
