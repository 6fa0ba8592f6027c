"""Pools in real sandboxes: the published script, every way a worker can misbehave, and what may die around it."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed import BoltzUnavailable, Client, NodeUnavailable, RLPool, connect
from tests.e2e.node_process import NodeProcess
from tests.e2e.published_pool import CANDIDATE, ENV_DIR, RUN_POOL, write_files

pytestmark = pytest.mark.slow

ACTOR = """
import os, signal, subprocess, sys, threading, time
from hotbed.env import serve
count = 0
def reset(seed):
    global count
    count = 0
    return {"seed": seed, "pid": os.getpid()}
def step(action):
    global count
    count += 1
    if isinstance(action, str):
        exec(action, globals())
    return {"count": count}, 1.0, False, {}
serve(reset=reset, step=step)
"""
LIMITS = {"memory_mib": 160, "disk_mib": 96, "pids": 64}
Pooling = Callable[..., RLPool]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A node of these tests' own, with Boltz slots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path_factory.mktemp("pools")))
        patch.setenv("HOTBED_HOME", str(tmp_path_factory.mktemp("home")))
        with connect(boltz_slots=2) as made:
            yield made


@pytest.fixture
def pooling(client: Client, tmp_path: Path) -> Iterator[Pooling]:
    """Make pools of an env.py's text; all of them leave nothing."""
    made: list[RLPool] = []

    def make(n: int = 3, text: str = ACTOR, **options: Any) -> RLPool:
        directory = tmp_path / f"env{len(made)}"
        directory.mkdir()
        (directory / "env.py").write_text(text)
        made.append(RLPool(directory, n, **{"client": client, "step_timeout": 20.0, **options}))
        return made[-1]

    yield make
    for pool in made:
        pool.close()
    assert boxes_in_use(client) == 0


def boxes_in_use(client: Client) -> int:
    """Sandboxes that somebody has."""
    return int(client.stats()["node"]["running"])


@pytest.mark.parametrize("mode", ["default", "boltz"])
def test_the_published_script_runs_as_printed(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    """Under the name it imports, in both of its modes."""
    write_files(tmp_path, ENV_DIR)
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hotbed.sdk.connect._default", client)
    script = RUN_POOL.replace("n=1)", 'n=1, mode="boltz")') if mode == "boltz" else RUN_POOL

    exec(compile(script, "run_pool.py", "exec"), {"__name__": "__main__"})

    said = capsys.readouterr().out
    assert said.startswith("Task: Write add(a, b).")
    assert "Passed: True" in said
    assert "OK" in said


@pytest.mark.parametrize(
    ("statement", "statuses"),
    [
        ("os._exit(3)", {"exit"}),
        ("os.kill(os.getpid(), signal.SIGSEGV)", {"signal"}),
        ("raise KeyError('code')", {"error"}),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", {"oom"}),
        ("while True: os.fork()", {"pids", "oom"}),
        ("for _ in range(1000):\n    if os.fork() == 0: time.sleep(60)", {"pids"}),
        ("with open('/workspace/x', 'wb') as f:\n    for _ in range(1000): f.write(b'x' * (1 << 20))", {"disk", "oom"}),
        ("for _ in range(1000): threading.Thread(target=time.sleep, args=(60,)).start()", {"pids"}),
        ("for _ in range(1000): os.write(3, b'x' * (1 << 16))", {"protocol"}),
        ("os.write(3, b'\\x00' * 8)", {"protocol"}),
        ("if os.fork() == 0: time.sleep(60)\nos._exit(1)", {"exit"}),
        ("print('last words', file=sys.stderr, flush=True); os._exit(4)", {"exit"}),
    ],
)
def test_one_worker_misbehaves_and_the_others_do_not_notice(
    pooling: Pooling, statement: str, statuses: set[str]
) -> None:
    """And it plays again after its reset."""
    pool = pooling(3, limits=LIMITS)
    pool.reset()

    results, rewards, done, details = pool.step([0, statement, 0])
    tasks = pool.reset(mask=done)
    again = pool.step([0, 0, 0])

    assert (results[0], results[2]) == ({"count": 1}, {"count": 1})
    assert (results[1], rewards, done) == (None, [1.0, 0.0, 1.0], [False, True, False])
    assert details[1]["status"] in statuses, details[1]["reason"]
    if "last words" in statement:
        assert "last words" in details[1]["reason"]
    assert tasks[1]
    assert again[0] == [{"count": 2}, {"count": 1}, {"count": 2}]


@pytest.mark.parametrize(
    "statement",
    [
        "time.sleep(60)",
        "for s in range(1, 60):\n    if s not in (9, 19, 32, 33): signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        "while True: os.write(1, b'x' * 65536)",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_a_worker_that_does_not_answer_is_killed_and_replaced(pooling: Pooling, statement: str) -> None:
    """Whatever it ignores or floods meanwhile."""
    pool = pooling(2, step_timeout=0.5)
    pool.reset()

    _, _, done, details = pool.step([statement, 0])
    tasks = pool.reset(mask=done)

    assert (details[0]["status"], done) == ("timeout", [True, False])
    assert 500 <= details[0]["step_ms"] < 2500
    assert tasks[0]
    assert pool.step([0, 0])[2] == [False, False]


def test_what_a_worker_sees(pooling: Pooling) -> None:
    """The environment read-only at /env, a workspace of its own, no client of ours, nothing of the node."""
    look = (
        "import hotbed, boltzlabs\n"
        "count = [open('/env/env.py').read()[:7], os.access('/env/env.py', os.W_OK), os.access('/workspace', os.W_OK),"
        " hasattr(hotbed, 'RLPool'), sorted(n for n in os.listdir('/') if n.startswith('.')), sys.argv, sys.path[0]]"
    )
    pool = pooling(2)
    pool.reset()
    results, _, _, details = pool.step([look, "open('/workspace/mine', 'w').write('x')"])
    found = results[0]["count"] if results[0] else details[0]

    assert found == ["\nimport", False, True, False, [], ["/env/env.py"], "/env"]
    pool.reset(mask=[True, False])
    assert pool.step(["count = os.listdir('/workspace')", 0])[0][0] == {"count": []}


def test_programs_that_it_starts_can_import_serve(pooling: Pooling) -> None:
    """The author's tests import env.py, which imports `serve`; nothing else of ours is there."""
    run = "subprocess.run(['python3', '-c', {!r}], capture_output=True, text=True)"
    pool = pooling(1)
    pool.reset()
    good = pool.step([f"count = {run.format('from boltzlabs.env import serve; import hotbed.env')}.returncode"])[0]
    bad = pool.step([f"count = {run.format('import hotbed.sdk')}.stderr"])[0]

    assert good == [{"count": 0}]
    assert "No module named 'hotbed.sdk'" in bad[0]["count"]


def test_what_env_py_prints_is_readable(pooling: Pooling) -> None:
    """While it runs."""
    pool = pooling(1)
    pool.reset()
    pool.step(["print('out', flush=True); print('err', file=sys.stderr, flush=True)"])
    wait_until(lambda: pool.output(0).stderr == "err\n")

    assert (pool.output(0).stdout, pool.output(0).stderr) == ("out\n", "err\n")


def test_sixty_four_mebibytes_come_back(pooling: Pooling) -> None:
    """The largest observation."""
    pool = pooling(1, limits={"memory_mib": 1024})
    pool.reset()
    results = pool.step(["count = b'x' * (64 << 20)"])[0]

    assert len(results[0]["count"]) == 64 << 20


def test_a_client_elsewhere_steps_through_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TCP, where no descriptor can be handed over; everything else is as ever."""
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"env/env.py": ACTOR})
    port = free_port()
    node = NodeProcess(tmp_path, backend="fork", port=port)
    try:
        with connect(f"http://127.0.0.1:{port}") as client:
            with RLPool(tmp_path / "env", 3, client=client, step_timeout=1.0) as pool:
                pool.reset()
                results, _, done, details = pool.step([0, "os._exit(3)", "time.sleep(60)"])
                tasks = pool.reset(mask=done)
                again = pool.step([b"x" * (3 << 20), 0, 0])[0]
    finally:
        node.stop()

    assert results == [{"count": 1}, None, None]
    assert [detail["status"] for detail in details] == ["ok", "exit", "timeout"]
    assert tasks[1] and tasks[2]
    assert again == [{"count": 2}, {"count": 1}, {"count": 1}]


# --- boltz mode ---

SLOW_LOADER = """
import os, time
from hotbed.env import serve
time.sleep(0.5)
episodes = []
def reset(seed):
    episodes.append(seed)
    return {"episodes": len(episodes), "pid": os.getpid()}
serve(reset=reset, step=lambda action: (os.listdir("/workspace"), 0.0, False, {}))
"""


def test_boltz_loads_once_and_each_episode_is_a_fork(pooling: Pooling) -> None:
    """Thirty environments on two slots, of a directory that takes half a second to load."""
    pool = pooling(30, SLOW_LOADER, mode="boltz")
    begun = time.monotonic()
    first, second = pool.reset(), pool.reset()

    assert time.monotonic() - begun < 10
    assert [task["episodes"] for task in first + second] == [1] * 60
    assert pool.slots == 2
    assert pool.step([0] * 30)[0] == [[]] * 30


def test_boltz_failures_are_its_entries_too(pooling: Pooling) -> None:
    """A failing environment, a dead one, a hanging one."""
    pool = pooling(4, mode="boltz", step_timeout=1.0)
    pool.reset()
    details = pool.step(["raise ValueError", "os._exit(3)", "time.sleep(60)", 0])[3]
    pool.reset()

    assert [detail["status"] for detail in details] == ["error", "exit", "timeout", "ok"]
    assert pool.step([0] * 4)[0] == [{"count": 1}] * 4


def test_an_env_that_does_not_load_says_so_in_boltz_mode(pooling: Pooling) -> None:
    """With its traceback, as in default mode."""
    pool = pooling(2, "import no_such_module", mode="boltz")

    assert not any(pool.reset())
    assert "no_such_module" in pool.details[1]["reason"]


def test_boltz_needs_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no fallback to the other mode."""
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"env/env.py": ACTOR})
    with connect() as client, pytest.raises(BoltzUnavailable, match="--boltz-slots"):
        RLPool(tmp_path / "env", 1, "boltz", client=client)


# --- what dies around it ---


def test_a_worker_killed_from_outside_is_replaced(pooling: Pooling) -> None:
    """kill -9 of its process, as the kernel or an operator would."""
    pool = pooling(2)
    pool.reset()
    os.kill(host_pid_of(pool, 1), signal.SIGKILL)
    done = pool.step([0, 0])[2]
    pool.reset(mask=done)

    assert done == [False, True]
    assert pool.step([0, 0])[2] == [False, False]


def test_the_templates_death_is_survived(pooling: Pooling) -> None:
    """All workers go with it; their seats get new ones, and no reward was formed."""
    pool = pooling(3)
    pool.reset()
    worker = host_pid_of(pool, 0)
    os.kill(parent_of(parent_of(worker)), signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{worker}").exists())
    _, rewards, done, details = pool.step([0, 0, 0])
    tasks = pool.reset()

    assert (rewards, done) == ([None] * 3, [True] * 3)
    assert {detail["status"] for detail in details} == {"lost"}
    assert all(tasks)


def test_the_nodes_death_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a step: no reward, then an error that says that there is no node."""
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"env/env.py": ACTOR})
    with connect() as client:
        pool = RLPool(tmp_path / "env", 2, client=client)
        pool.reset()
        node = int((tmp_path / "run" / "node.pid").read_text())
        pool.step_async(["time.sleep(5)", "time.sleep(5)"])
        os.kill(node, signal.SIGKILL)
        _, rewards, _, details = pool.step_wait()
        with pytest.raises(NodeUnavailable):
            pool.reset()
        pool.close()

    assert rewards == [None, None]
    assert [detail["status"] for detail in details] == ["lost", "lost"]


def test_a_client_that_is_killed_leaves_nothing(client: Client, tmp_path: Path) -> None:
    """Its lease ends, and with it every worker."""
    (tmp_path / "env.py").write_text(ACTOR)
    child = os.fork()
    if child == 0:
        try:
            pool = RLPool(tmp_path, 5, client=client)
            pool.reset()
            pool.step_async(["time.sleep(60)"] * 5)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    wait_until(lambda: boxes_in_use(client) == 0)


# --- many and long ---


def test_two_hundred_workers(pooling: Pooling) -> None:
    """Made, reset, stepped and ended."""
    pool = pooling(200)
    assert all(pool.reset())
    results = [pool.step([0] * 200)[0] for _ in range(3)]

    assert results[-1] == [{"count": 3}] * 200


def test_ten_thousand_steps_leak_nothing(pooling: Pooling, client: Client) -> None:
    """Neither descriptors here nor sandboxes there."""
    pool = pooling(4)
    pool.reset()
    pool.step([0] * 4)
    before = (len(os.listdir("/proc/self/fd")), boxes_in_use(client))
    for number in range(2500):
        pool.step([0] * 4)
        if number % 500 == 0:
            pool.reset(mask=pool.step(["os._exit(1)", 0, 0, 0])[2])

    assert (len(os.listdir("/proc/self/fd")), boxes_in_use(client)) == before


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool]) -> None:
    """For ten seconds at most."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def host_pid_of(pool: RLPool, worker: int) -> int:
    """A worker's process as the host numbers it, found by a name that it gives itself."""
    name = f"mark{os.urandom(4).hex()}"
    pool.step([f"open('/proc/self/comm', 'w').write('{name}')" if i == worker else 0 for i in range(pool.n)])
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError("no such process")


def parent_of(pid: int) -> int:
    """Its parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
