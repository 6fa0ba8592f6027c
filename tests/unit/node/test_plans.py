"""From a request to what the runtime is told, and from an outcome to the answer."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest, IsolationUnavailable
from hotbed.node import plans
from hotbed.runtime.base import ExecOutcome, Limits, TemplateSpec
from hotbed.wire.execs import ExecRequest, ExecResponse, FileSpec, RolloutRequest
from hotbed.wire.sandboxes import CreateSandbox

SPEC = TemplateSpec(name="python", limits=Limits(memory_mib=256, disk_mib=64))


class Forked:
    """As much of a box and its template as an answer tells of."""

    warm_hit = True
    fork_time_ms = 1.23456
    isolation = "fork"
    spec = SPEC
    digest = "d1"


def answer(outcome: ExecOutcome) -> ExecResponse:
    """The answer to an outcome."""
    forked = Forked()
    return plans.response(outcome, exec_id="x", box=forked, template=forked, seed="s", total_ms=2.0)  # type: ignore[arg-type]  # only what it tells of


def test_every_field_of_a_request_reaches_the_runtime() -> None:
    """A field that is dropped here is a feature that silently does nothing."""
    plan = plans.exec_plan(
        ExecRequest(
            code_b64=b"\xff",
            args=("a",),
            files=(FileSpec(path="/work/f", content="x", mode=0o600),),
            stdin="in",
            env={"A": "b"},
            cwd="/tmp",
            timeout_seconds=2.0,
            output_bytes=7,
            keep_going=True,
        )
    )

    assert (plan.kind, plan.program, plan.args) == ("code", b"\xff", ("a",))
    assert plan.files == (("/work/f", b"x", 0o600),)
    assert (plan.stdin, plan.env, plan.cwd) == (b"in", {"A": "b"}, "/tmp")
    assert (plan.timeout_s, plan.output_bytes, plan.keep_going) == (2.0, 7, True)


def test_each_kind_of_program_is_told_apart() -> None:
    """An empty program too."""
    assert plans.program_of(ExecRequest(code="")) == ("code", b"")
    assert plans.program_of(ExecRequest(command="ls")) == ("command", b"ls")
    assert plans.program_of(ExecRequest(commands=(("ls",),))) == ("commands", b"")


def test_an_argument_over_the_kernels_limit_is_refused_before_anything_runs() -> None:
    """200 KiB of command line would fail in the sandbox with less to say."""
    with pytest.raises(InvalidRequest, match="kernel's limit"):
        plans.exec_plan(ExecRequest(commands=(("echo", "x" * 200_000),)))
    with pytest.raises(InvalidRequest, match="kernel's limit"):
        plans.exec_plan(ExecRequest(command="x" * 200_000))


def test_a_seed_that_was_given_pins_randomness() -> None:
    """What a kept sandbox will run is not known yet, so it is a fresh fork: its first process is always the same."""
    plan = plans.box_plan(SPEC, CreateSandbox(template="python", seed="A" * 64))

    assert (plan.seed, plan.determinism, plan.use_spare) == (b"\xaa" * 32, "rng", False)


@pytest.mark.parametrize(
    ("program", "spare"),
    [
        ({"code": "1"}, True),
        ({"command": "ls"}, True),
        ({"commands": (("ls",),)}, True),
        ({"commands": (("ls",), ("ls",))}, True),
        ({"code": "1", "stdin": "x"}, False),
        ({"code": "1" * 100_000}, False),
    ],
)
def test_a_pinned_rollout_takes_a_spare_beside_which_it_has_the_same_number(program: Any, spare: bool) -> None:
    """Commands have; a program that the spare cannot run would come after it."""
    request = RolloutRequest(template="python", seed="a" * 64, **program)

    assert plans.box_plan(SPEC, request).use_spare is spare
    assert plans.exec_plan(request).seed == b"\xaa" * 32
    assert plans.exec_plan(request).determinism == "rng"


def test_an_unseeded_fork_pays_nothing_but_still_has_a_seed() -> None:
    """So that its result can name one."""
    request = RolloutRequest(template="python", code="1")
    plan = plans.box_plan(SPEC, request)

    assert (plan.seed, plan.determinism, plan.use_spare, plan.limits) == (None, "none", True, None)
    assert len(plans.seed_of(request)) == 64


def test_limits_change_what_the_template_says_and_keep_the_rest() -> None:
    """JSON numbers are floats; a whole one is as good as an int."""
    plan = plans.box_plan(SPEC, CreateSandbox(template="python", limits={"pids": 8.0, "cpus": 0.5}))

    assert plan.limits == Limits(memory_mib=256, disk_mib=64, pids=8, cpus=0.5)
    for wrong in ({"pids": 0.5}, {"speed": 1.0}, {"memory_mib": -1.0}):
        with pytest.raises(InvalidRequest):
            plans.box_plan(SPEC, CreateSandbox(template="python", limits=wrong))


def test_less_isolation_than_asked_for_is_refused() -> None:
    """Never silently."""
    plans.check_isolation("fork", None)
    plans.check_isolation("fork", "fork")
    plans.check_isolation("vm", "fork")
    with pytest.raises(IsolationUnavailable, match="min_isolation"):
        plans.check_isolation("fake", "process")


def test_the_answer_carries_what_happened() -> None:
    """In the words of the wire."""
    told = answer(
        ExecOutcome(
            status="ok",
            exit_code=0,
            stdout=b"a",
            stderr=b"\xff",
            order=((1, 1),),
            start_ns=1_000_000,
            end_ns=3_500_000,
            cpu_us=1500,
        )
    )

    assert (told.ok, told.exit_code, told.stdout, told.stderr_b64) == (True, 0, "a", b"\xff")
    assert (told.exec_time_ms, told.cpu_ms, told.fork_time_ms) == (2.5, 1.5, 1.235)
    assert (told.template, told.template_digest, told.warm_hit, told.isolation) == ("python", "d1", True, "fork")


def test_a_killed_program_has_exit_code_minus_one() -> None:
    """As the published client expects."""
    told = answer(ExecOutcome(status="timeout", exit_code=None))

    assert (told.ok, told.exit_code, told.status) == (False, -1, "timeout")


@pytest.mark.parametrize(("program", "ahead"), [({"code": "1"}, "code"), ({"command": "ls"}, "command")])
def test_what_may_be_pinned_ahead_is_known_from_what_will_run(program: Any, ahead: str) -> None:
    """Of a sandbox that is kept it is not known."""
    request = RolloutRequest(template="python", seed="a" * 64, **program)

    assert plans.box_plan(SPEC, request, first=plans.exec_plan(request)).ahead == ahead
    assert plans.box_plan(SPEC, request).ahead is None
