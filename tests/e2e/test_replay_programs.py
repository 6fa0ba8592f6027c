"""Programs that know nothing of us say the same with the same seed, and something else with another.

Each is run five times with one seed and once with another, in a fresh sandbox each time, at every level at which the
page promises it (`replay_table.py`). Programs that this machine does not have are skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime import execs
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, Determinism, ExecOutcome, ExecRequest, TemplateSpec
from hotbed.runtime.sandboxes import ForkBox
from tests.e2e import replay_table
from tests.e2e.replay_table import PROGRAMS, Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

T = TypeVar("T")
SEED, OTHER_SEED = b"\x01" * 32, b"\x02" * 32
DRAW = ExecRequest(
    kind="code",
    program=b"import os, random; print(os.urandom(8), random.random(), os.getpid())",
    seed=SEED,
    determinism="rng",
)
DRAW_BY_COMMAND = ExecRequest(
    kind="command",
    program=b"echo $$ $PPID; od -An -tx1 -N8 /dev/urandom; python3 -c 'import os; print(os.urandom(8), os.getpid())'",
    seed=SEED,
    determinism="rng",
)
SPEC = TemplateSpec(name="python", preload=("random", "secrets", "tempfile", "uuid", "multiprocessing"), programs=())
CASES = [
    pytest.param(program, level, id=f"{program.name}, {level}")
    for program in PROGRAMS
    for level, promise in (("rng", program.rng), ("full", program.full))
    if promise == "same"
]


class Bench:
    """A started backend, driven from plain tests."""

    def __init__(self, directory: str) -> None:
        self.backend = ForkBackend(ForkSettings(spares=4, run_dir=directory))
        self._loop = asyncio.new_event_loop()
        self._built: dict[tuple[str, ...], bytes] = {}
        self._directory = Path(directory)
        self.run(self.backend.start())

    def run(self, waited: Awaitable[T]) -> T:
        """Wait for something, for a bounded time."""
        return self._loop.run_until_complete(asyncio.wait_for(waited, 150))

    async def outcome(self, request: ExecRequest, spec: TemplateSpec = SPEC, *, spare: bool = True) -> ExecOutcome:
        """What a request gives in a sandbox of its own."""
        template = await self.backend.template(spec)
        box = await template.fork(BoxRequest(use_spare=spare, ahead=execs.ahead_for(request)))
        try:
            return await box.exec(request)
        finally:
            await box.kill()

    def request(self, program: Program, seed: bytes | None, level: Determinism) -> ExecRequest:
        """A program as a request."""
        files = tuple(
            (f"/work/{name}", self._build(source, compiler), 0o755) for name, source, compiler in program.builds
        )
        return ExecRequest(
            kind=program.kind,
            program=program.text.encode(),
            files=files,
            stdin=program.stdin.encode(),
            seed=seed,
            determinism=level,
        )

    def said(self, program: Program, seed: bytes, level: Determinism) -> bytes:
        """What a program prints, pinned and verified."""
        outcome = self.run(self.outcome(self.request(program, seed, level)))
        assert (outcome.status, outcome.stderr) == ("ok", b""), outcome
        assert outcome.seed_ack == "verified"
        return outcome.stdout

    def _build(self, source: str, compiler: tuple[str, ...]) -> bytes:
        key = (source, *compiler)
        if key not in self._built:
            self._built[key] = build(self._directory, source, compiler)
        return self._built[key]

    def close(self) -> None:
        """End it."""
        self.run(self.backend.close())
        self._loop.close()


def build(directory: Path, source: str, compiler: tuple[str, ...]) -> bytes:
    """Compile one file on the host."""
    binary = directory / "built"
    if compiler[0] == "go":
        (directory / "main.go").write_text(source)
        argv = ["go", "build", "-o", str(binary), str(directory / "main.go")]
        env = {**os.environ, "GOCACHE": str(directory / "gocache"), "GO111MODULE": "off", "HOME": str(directory)}
        subprocess.run(argv, check=True, cwd=directory, env=env)
    else:
        subprocess.run([*compiler, "-", "-o", str(binary)], input=source.encode(), check=True)
    return binary.read_bytes()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One backend for all programs. A template's user must be able to reach its directory, so pytest's will not do."""
    with tempfile.TemporaryDirectory(prefix="hotbed-replay-") as directory:
        os.chmod(directory, 0o755)
        one = Bench(directory)
        yield one
        one.close()


@pytest.mark.parametrize(("program", "level"), CASES)
def test_a_program_says_the_same_with_the_same_seed(bench: Bench, program: Program, level: Determinism) -> None:
    """And, where it shows anything of the seed, something else with another."""
    if not program.installed():
        pytest.skip(f"{', '.join(program.needs) or program.builds[0][2][0]} is not installed")
    said = [bench.said(program, SEED, level) for _ in range(5)]
    other = bench.said(program, OTHER_SEED, level)

    assert len(set(said)) == 1, said
    assert said[0].strip()
    assert (other != said[0]) == program.seeded


def test_the_page_shows_this_table() -> None:
    """What is promised is what is tested."""
    page = replay_table.PAGE.read_text()

    assert replay_table.page_with_table(page) == page, "run python -m tests.e2e.replay_table"


def test_programs_say_the_same_beside_many_others(bench: Bench) -> None:
    """One supervisor answers for all of them, in whatever order they ask."""
    programs = [program for program in PROGRAMS if program.rng == "same" and not program.heavy and program.installed()]
    alone = [bench.said(program, SEED, "rng") for program in programs]

    async def crowd() -> list[ExecOutcome]:
        requests = [bench.request(program, SEED, "rng") for program in programs for _ in range(3)]
        return list(await asyncio.gather(*(bench.outcome(request) for request in requests)))

    together = bench.run(crowd())

    assert [outcome.stdout for outcome in together] == [said for said in alone for _ in range(3)]
    assert {outcome.seed_ack for outcome in together} == {"verified"}


def test_a_parked_sandbox_a_fresh_one_and_a_later_template_make_no_difference(bench: Bench) -> None:
    """Which of them a rollout got is chance: its bytes, numbers and hashes must not tell."""
    warm = next(program for program in PROGRAMS if program.name == "python, warm")
    request = bench.request(warm, SEED, "rng")
    parked = bench.run(bench.outcome(request)).stdout
    fresh = bench.run(bench.outcome(request, spare=False)).stdout
    bench.run(bench.backend.retire(SPEC))
    later = bench.run(bench.outcome(request)).stdout

    assert parked == fresh == later


def test_a_command_has_the_same_numbers_in_a_parked_sandbox_and_a_fresh_one(bench: Bench) -> None:
    """A parked one has a spare that a fresh one has not; neither its process number nor its draws tell."""
    lines = b"echo $$ $PPID; od -An -tx1 -N8 /dev/urandom; sh -c 'echo $$'"
    request = ExecRequest(kind="command", program=lines, seed=SEED, determinism="rng")
    parked, fresh = (bench.run(bench.outcome(request, spare=spare)) for spare in (True, False))

    assert parked.stdout == fresh.stdout
    assert "pid" in parked.pinned
    assert "pid" in fresh.pinned


def test_the_clock_begins_where_it_is_told_and_moves_by_what_it_is_told(bench: Bench) -> None:
    """In the warm interpreter and in what it starts."""
    code = b"import time; a = time.time_ns(); print(a // 10**9, time.time_ns() - a)"
    clock = (1_000_000_000 * 10**9, 7_000)

    def said(kind: Any, program: bytes) -> bytes:
        request = ExecRequest(kind=kind, program=program, seed=SEED, determinism="full", clock=clock)
        return bench.run(bench.outcome(request)).stdout

    assert said("code", code) == b"1000000000 7000\n"
    assert said("command", b"date +%s") == b"1000000000\n"


def test_numpy_and_openssl_of_a_warm_interpreter_are_pinned(bench: Bench) -> None:
    """Their state was made in the template, which every fork shares."""
    pytest.importorskip("numpy")
    spec = TemplateSpec(name="numpy", preload=("numpy.random", "ssl"), programs=())
    code = (
        "import numpy, ssl; print(numpy.random.rand(2), numpy.random.default_rng().random(), ssl.RAND_bytes(8).hex())"
    )

    def said(seed: bytes) -> bytes:
        request = ExecRequest(kind="code", program=code.encode(), seed=seed, determinism="rng")
        outcome = bench.run(bench.outcome(request, spec))
        assert outcome.status == "ok", outcome
        return outcome.stdout

    assert said(SEED) == said(SEED) != said(OTHER_SEED)


def test_unseeded_forks_of_one_template_share_no_randomness(bench: Bench) -> None:
    """Each number of each of twelve forks is its own."""
    pytest.importorskip("numpy")
    spec = TemplateSpec(name="numpy", preload=("numpy.random", "ssl", "uuid", "tempfile"), programs=())
    code = """
import numpy, os, random, secrets, ssl, tempfile, uuid
print(random.random(), numpy.random.rand(), uuid.uuid4(), secrets.token_hex(8), ssl.RAND_bytes(8).hex())
print(tempfile.mktemp(), os.urandom(8).hex(), numpy.random.default_rng().random(), uuid.uuid1().clock_seq)
"""

    async def forks() -> list[ExecOutcome]:
        request = ExecRequest(kind="code", program=code.encode())
        return list(await asyncio.gather(*(bench.outcome(request, spec) for _ in range(12))))

    words = [word for outcome in bench.run(forks()) for word in outcome.stdout.split()[:-1]]

    assert len(words) == 12 * 8
    assert len(set(words)) == len(words)


def supervisor_of(bench: Bench) -> int | None:
    """The supervisor's process: the launcher's child that holds a listener, if there is one by now."""
    children = Path(f"/proc/{bench.backend.launching.pid}/task/{bench.backend.launching.pid}/children").read_text()
    for pid in map(int, children.split()):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if "seccomp notify" in os.readlink(link):
                    return pid
    return None


@pytest.mark.parametrize("fallback", ["raise", "os.open('/dev/null', os.O_RDONLY); break"])
def test_when_the_supervisor_dies_the_rollout_fails(bench: Bench, fallback: str) -> None:
    """Also one that would have gone on with other randomness, and have said that all is well."""
    code = f"""
import os
while True:
    try:
        os.getrandom(8)
    except OSError:
        {fallback}
"""
    request = ExecRequest(kind="code", program=code.encode(), seed=SEED, determinism="rng", timeout_s=20)

    async def rollout() -> ExecOutcome:
        running = asyncio.ensure_future(bench.outcome(request))
        while (supervisor := supervisor_of(bench)) is None:
            await asyncio.sleep(0.02)
        os.kill(supervisor, signal.SIGKILL)
        return await running

    with pytest.raises(SandboxFailed, match="pinned"):
        bench.run(rollout())

    assert bench.run(bench.outcome(bench.request(PROGRAMS[0], SEED, "rng"))).seed_ack == "verified"


def test_when_the_supervisor_dies_among_many_rollouts_each_fails_or_was_pinned_to_its_end(bench: Bench) -> None:
    """No result of any of them is one that went on without it."""
    code = b"import os\nfor _ in range(300): os.getrandom(8); os.close(os.open('/dev/null', 0))\nprint(os.urandom(8))"
    request = ExecRequest(kind="code", program=code, seed=SEED, determinism="rng", timeout_s=60)
    expected = bench.run(bench.outcome(request))

    async def rollouts() -> list[Any]:
        running = [asyncio.ensure_future(bench.outcome(request)) for _ in range(16)]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        while (supervisor := supervisor_of(bench)) is None:
            await asyncio.sleep(0.001)
        os.kill(supervisor, signal.SIGKILL)
        return await asyncio.gather(*running, return_exceptions=True)

    found = bench.run(rollouts())
    failed = [one for one in found if isinstance(one, BaseException)]

    assert failed and {type(one) for one in failed} == {SandboxFailed}
    assert {(one.seed_ack, one.stdout) for one in found if one not in failed} == {("verified", expected.stdout)}


def parked_ahead(bench: Bench, request: ExecRequest, count: int) -> None:
    """Wait until so many sandboxes are parked in which something was pinned ahead of such a request."""

    async def wait() -> None:
        template = await bench.backend.template(SPEC)
        kind = execs.ahead_for(request)
        assert kind is not None
        while len(template.pinned[kind]) < count:
            await bench.outcome(request)
            await asyncio.sleep(0.05)

    bench.run(wait())


@pytest.mark.parametrize("request_", [DRAW, DRAW_BY_COMMAND], ids=["code", "command"])
def test_what_was_pinned_ahead_says_the_same_and_is_for_nothing_else(bench: Bench, request_: ExecRequest) -> None:
    """As one that was pinned when its seed was known; what is not seeded draws nothing of a seed's."""
    fresh = bench.run(bench.outcome(request_, spare=False))

    async def one(request: ExecRequest) -> tuple[bool, ExecOutcome]:
        template = await bench.backend.template(SPEC)
        box = await template.fork(BoxRequest(ahead=execs.ahead_for(request_)))
        assert isinstance(box, ForkBox)
        try:
            waits = box.pins._ahead is not None
            return waits, await box.exec(request)
        finally:
            await box.kill()

    def next_one(request: ExecRequest) -> ExecOutcome:
        parked_ahead(bench, request_, 1)
        waited, outcome = bench.run(one(request))
        assert waited
        return outcome

    pinned, other = next_one(request_), next_one(replace(request_, seed=OTHER_SEED))
    plain = next_one(replace(request_, seed=None, determinism="none"))
    threads = b"import os; print(len(os.listdir('/proc/1/task')))"
    forked = next_one(ExecRequest(kind="code", program=threads, stdin=b"x"))
    full = next_one(replace(request_, determinism="full"))

    assert (pinned.stdout, pinned.seed_ack, pinned.pinned) == (fresh.stdout, "verified", fresh.pinned)
    assert other.stdout not in (fresh.stdout, plain.stdout) and plain.stdout != fresh.stdout
    assert (plain.seed_ack, full.seed_ack, "clock" in full.pinned) == ("off", "verified", True)
    assert forked.stdout == b"1\n", "an agent that forks is alone"


@pytest.mark.parametrize("request_", [DRAW, DRAW_BY_COMMAND], ids=["code", "command"])
def test_when_the_supervisor_dies_what_was_pinned_ahead_ends_with_it(bench: Bench, request_: ExecRequest) -> None:
    """Nobody is handed one; others are pinned by the next supervisor."""
    parked_ahead(bench, request_, 2)

    async def outcome() -> ExecOutcome:
        template = await bench.backend.template(SPEC)
        parked = tuple(box for stock in template.pinned.values() for box in stock)
        supervisor = supervisor_of(bench)
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        await asyncio.gather(*(box.wait_gone() for box in parked))
        return await bench.outcome(request_)

    assert bench.run(outcome()).seed_ack == "verified"
    parked_ahead(bench, request_, 1)


@pytest.mark.parametrize("level", ["rng", "full"])
def test_a_seeded_exec_that_is_killed_is_still_told_as_such(bench: Bench, level: Any) -> None:
    """Pinned or not, a timeout is a result."""
    code = b"import os\nwhile True: os.urandom(8)"
    request = ExecRequest(kind="code", program=code, seed=SEED, determinism=level, timeout_s=0.3)
    outcome = bench.run(bench.outcome(request))

    assert (outcome.status, outcome.seed_ack) == ("timeout", "verified")


def test_an_unseeded_exec_is_not_pinned(bench: Bench) -> None:
    """It pays nothing, and says so."""
    outcome = bench.run(bench.outcome(ExecRequest(kind="command", program=b"true")))

    assert (outcome.seed_ack, outcome.pinned) == ("off", ())


def test_a_command_that_cannot_be_started_says_so_as_without_a_seed(bench: Bench) -> None:
    """Exit code and words of a shell."""
    plain = ExecRequest(kind="commands", argv=(("/nonexistent", "x"),))
    pinned = ExecRequest(kind="commands", argv=(("/nonexistent", "x"),), seed=SEED, determinism="rng")
    found = [bench.run(bench.outcome(request)) for request in (plain, pinned)]

    assert [(outcome.exit_code, outcome.stderr) for outcome in found] == [(127, found[0].stderr)] * 2


def test_commands_in_turn_share_one_clock(bench: Bench) -> None:
    """Level full: the second begins where the first left off."""
    dates = (("date", "+%s.%N"), ("sleep", "0.05"), ("date", "+%s.%N"))
    request = ExecRequest(kind="commands", argv=dates, seed=SEED, determinism="full")
    first, second = (bench.run(bench.outcome(request)) for _ in range(2))
    before, after = map(float, first.stdout.split())

    assert first.stdout == second.stdout
    assert 0.05 <= after - before < 0.06
