"""The fork backend as a whole: spares, restarts, retirement, and that nothing is left of it, however it ended."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hotbed.errors import AtCapacity, SandboxGone, TemplateFailed
from hotbed.runtime import planning
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.backends.fork_template import ForkTemplate
from hotbed.runtime.base import BoxRequest, ExecRequest, Limits, Solo, TemplateSpec
from hotbed.runtime.images.store import Hold, Store
from hotbed.runtime.linux import cgroups
from hotbed.runtime.selfcheck.bench import below

SPEC = TemplateSpec(name="python", programs=())
# What a node that is about to be killed does: one sandbox with a daemon, and spares.
DOOMED = """
import asyncio, sys
from hotbed.runtime import planning
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, TemplateSpec
backend = ForkBackend(ForkSettings(spares=2, run_dir=sys.argv[1]))
async def main():
    await backend.start()
    template = await backend.template(TemplateSpec(name="python", programs=()))
    box = await template.fork(BoxRequest(use_spare=False))
    await box.exec(ExecRequest(kind="command", program=b"(setsid sleep 1000 >/dev/null 2>&1 &)"))
    print(template.process.pid, flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def code(source: str) -> ExecRequest:
    """Python to run."""
    return ExecRequest(kind="code", program=source.encode())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a template of root's can reach its root with an id of its own."""
    tmp_path.chmod(0o755)  # a template of root's has to reach it with an id of its own
    return tmp_path


def with_backend(
    place: Path,
    test: Callable[[ForkBackend, ForkTemplate], Awaitable[None]],
    *,
    spares: int = 0,
    spec: TemplateSpec = SPEC,
) -> None:
    """Run a test on a started backend with one template."""
    backend = ForkBackend(ForkSettings(spares=spares, networks=4, run_dir=str(place)))

    async def run() -> None:
        await backend.start()
        try:
            await test(backend, await backend.template(spec))
        finally:
            await backend.close()
            await backend.close()

    asyncio.run(run())


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens soon."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


def test_parked_sandbox_serves_the_request_that_fits(place: Path) -> None:
    """Other limits, or a wish for a fresh one, mean a fork."""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        await template.spares.wait_parked()
        parked = await template.fork(BoxRequest())
        fresh = await template.fork(BoxRequest(use_spare=False))
        other = await template.fork(BoxRequest(limits=Limits(pids=9)))
        for box in (parked, fresh, other):
            assert (await box.exec(code("print(1)"))).stdout == b"1\n"

        assert (parked.warm_hit, fresh.warm_hit, other.warm_hit) == (True, False, False)
        assert parked.fork_time_ms < 5 and fresh.fork_time_ms > 0
        assert backend.stats()["warm_hits"] == 1 and backend.stats()["forks"] == 3

    with_backend(place, test, spares=1)


def test_killed_template_is_started_again(place: Path) -> None:
    """Its sandboxes say that they are gone; the next one works."""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        box = await template.fork(BoxRequest())
        await box.ready()
        assert template.process is not None
        os.kill(template.process.pid, signal.SIGKILL)

        with pytest.raises(SandboxGone):
            await box.exec(code("import time; time.sleep(60)"))
        assert "template" in await box.wait_gone()
        again = await template.fork(BoxRequest())
        assert (await again.exec(code("print(2)"))).stdout == b"2\n"

    with_backend(place, test)


def test_a_fork_collects_nothing_that_its_template_holds_for_the_others(place: Path) -> None:
    """With two hundred of them alive, each newborn began with a collection, and its program's walked over theirs."""
    young = code("import gc; print(gc.get_count()[0])")

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        counts = []
        for _ in range(12):
            box = await template.fork(BoxRequest())
            counts.append(int((await box.exec(young)).stdout))

        assert counts[-1] - counts[1] < 20, counts  # each of them is held by some five objects

    with_backend(place, test)


def test_preload_that_fails_shows_its_traceback(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author of a template reads it."""
    packages = place / "packages"
    packages.mkdir()
    (packages / "hotbed_broken_module.py").write_text("raise RuntimeError('broken on import')\n")
    monkeypatch.syspath_prepend(str(packages))

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        with pytest.raises(TemplateFailed, match="broken on import"):
            await backend.template(TemplateSpec(name="broken", preload=("hotbed_broken_module",), programs=()))

    with_backend(place, test)


def test_preloaded_package_is_warm_and_found_by_programs_too(place: Path) -> None:
    """numpy, with its libraries, from wherever the node has it."""
    pytest.importorskip("numpy")
    spec = TemplateSpec(name="n", preload=("numpy",), programs=(), env=(("OPENBLAS_NUM_THREADS", "1"),))

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        box = await template.fork(BoxRequest())
        warm = await box.exec(
            code("import sys; print('numpy' in sys.modules); import numpy; print(numpy.arange(3).sum())")
        )
        cold = await box.exec(
            ExecRequest(kind="command", program=b"python -c 'import numpy; print(numpy.ones(2).sum())'")
        )

        assert (warm.stdout, warm.stderr) == (b"True\n3\n", b"")
        assert (cold.stdout, cold.stderr) == (b"2.0\n", b"")

    with_backend(place, test, spec=spec)


def test_network_that_carried_traffic_is_never_leased_again(place: Path) -> None:
    """A connection that was closed keeps its port for a minute (TIME_WAIT); the next sandbox must not notice."""
    talk = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 40123))
server.listen()
client = socket.create_connection(("127.0.0.1", 40123))
accepted, _ = server.accept()
accepted.close()
client.close()
print("talked")
"""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        for _ in range(8):  # more often than there are namespaces in the pool
            box = await template.fork(BoxRequest())
            outcome = await box.exec(code(talk))
            await box.kill()
            assert (outcome.stdout, outcome.stderr) == (b"talked\n", b"")

    with_backend(place, test)


def test_retired_template_leaves_no_process(place: Path) -> None:
    """Templates made for one pool end with it."""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        box = await template.fork(BoxRequest())
        await box.ready()
        assert template.process is not None
        pid = template.process.pid

        await backend.retire(SPEC)
        await until(lambda: not Path(f"/proc/{pid}").exists())
        with pytest.raises(SandboxGone):
            await box.exec(code("pass"))
        assert backend.stats()["templates"] == 0

    with_backend(place, test)


@pytest.mark.slow
def test_many_sandboxes_leave_nothing_behind(place: Path) -> None:
    """Descriptors, processes, groups: back to where they were."""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        async def one() -> None:
            box = await template.fork(BoxRequest())
            assert (await box.exec(code("print(1)"))).status == "ok"
            await box.kill()

        await asyncio.gather(*(one() for _ in range(8)))
        assert template.process is not None
        pid = template.process.pid
        processes, descriptors = below(pid), len(os.listdir("/proc/self/fd"))
        for _ in range(8):
            await asyncio.gather(*(one() for _ in range(16)))
        await until(lambda: below(pid) == processes)

        slots = 6 * backend.stats()["cgroups_free"]
        assert len(os.listdir("/proc/self/fd")) <= descriptors + slots
        assert backend.stats()["boxes"] == backend.stats()["cgroups_used"] == 0

    with_backend(place, test)
    assert list(place.glob("hotbed-*")) == []


@pytest.mark.slow
def test_killed_node_leaves_no_process_and_the_next_one_sweeps_the_rest(place: Path) -> None:
    """kill -9: no exit handler runs, the kernel's chain of parents does it."""
    node = subprocess.Popen([sys.executable, "-c", DOOMED, str(place)], stdout=subprocess.PIPE)
    assert node.stdout is not None
    template = int(node.stdout.readline())
    living = below(node.pid)
    assert template in living and any(b"1000" in cmdline(pid) for pid in living)
    node.kill()
    node.communicate()

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        await until(lambda: not [pid for pid in living if Path(f"/proc/{pid}").exists()])

    with_backend(place, test)
    assert list(place.glob("hotbed-*")) == []
    assert [p for root in cgroups.discover().roots() for p in root.glob(f"hotbed-{node.pid}-*")] == []


def cmdline(pid: int) -> bytes:
    """What a process was started as."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_host_without_room_for_processes_is_at_capacity(place: Path) -> None:
    """It passes, and nothing has run: worth asking again."""

    async def test(_: ForkBackend, template: ForkTemplate) -> None:
        assert template.process is not None
        limit, before = resource.RLIMIT_NPROC, resource.prlimit(template.process.pid, resource.RLIMIT_NPROC)
        resource.prlimit(template.process.pid, limit, (1, before[1]))
        box = await template.fork(BoxRequest())
        with pytest.raises(AtCapacity):
            await box.exec(code("print(1)"))
        resource.prlimit(template.process.pid, limit, before)

        again = await template.fork(BoxRequest())
        assert (await again.exec(code("print(1)"))).stdout == b"1\n"

    with_backend(place, test)


def test_after_its_last_answer_a_sandbox_ends_by_itself(place: Path) -> None:
    """With all that was started in it; nobody has to be asked to kill it."""

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        box = await template.fork(BoxRequest())
        source = b"import os\nif os.fork() == 0:\n    import time; time.sleep(60)\nprint('done')"
        outcome = await box.exec(ExecRequest(kind="code", program=source, last=True))

        assert outcome.stdout == b"done\n"
        assert await asyncio.wait_for(box.wait_gone(), 5) == "exited with 0"
        assert not backend.stats()["boxes"]

    with_backend(place, test)


def test_a_sandbox_that_cannot_be_made_keeps_no_group(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is short of descriptors must not lose more of them each time it tries."""

    def none(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def test(backend: ForkBackend, template: ForkTemplate) -> None:
        with socket.socket() as channel:
            solo = Solo(program="judging.judge", config={}, channel=channel)
            for module, name, request in (
                (socket, "socketpair", BoxRequest(use_spare=False)),
                (os, "memfd_create", BoxRequest(use_spare=False, solo=solo)),
            ):
                with monkeypatch.context() as patch:
                    patch.setattr(module, name, none)
                    with pytest.raises(OSError, match="Too many open files"):
                        await template.fork(request)
        assert not backend.stats().get("cgroups_used") and not backend.stats()["boxes"]

    with_backend(place, test)


def test_who_is_second_to_use_a_template_holds_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor who is gone by then: an image whose layers somebody holds can never be removed."""
    holds: list[Hold] = []
    real = planning.view_of

    def view_of(spec: TemplateSpec, images: Store) -> tuple[planning.View, Hold]:
        holds.append(Hold([os.open("/dev/null", os.O_RDONLY)]))
        return real(spec, images)[0], holds[-1]

    async def test(backend: ForkBackend, _: ForkTemplate) -> None:
        monkeypatch.setattr(planning, "view_of", view_of)
        spec = TemplateSpec(name="other", programs=())
        first, second = await asyncio.gather(backend.template(spec), backend.template(spec))
        assert first is second and len(holds) == 2 and len([hold for hold in holds if hold._locks]) == 1

        gone = asyncio.ensure_future(backend.template(TemplateSpec(name="third", programs=())))
        await asyncio.sleep(0)
        gone.cancel()
        await until(lambda: len(holds) == 3 and not holds[2]._locks)

    with_backend(place, test)
