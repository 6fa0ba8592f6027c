"""Pools in real sandboxes: the published script, what a worker sees, every way in which it can misbehave."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hotbed import BoltzUnavailable, Client, InvalidRequest, RLPool, connect
from tests.e2e.node_process import NodeProcess, node_process
from tests.e2e.pooling import ACTOR, LIMITS, Pooling, client, free_port, pooling, wait_until
from tests.e2e.published_pool import CANDIDATE, ENV_DIR, RUN_POOL, write_files
from tests.unit.pools.test_requirements import wheel

__all__ = ["client", "pooling"]

pytestmark = pytest.mark.slow


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


WITH_PACKAGE = """
import subprocess, sys
import tinything
from hotbed.env import serve
def step(action):
    run = subprocess.run(["python3", "-c", "import tinything; print(tinything.ANSWER)"], capture_output=True, text=True)
    return [tinything.ANSWER, tinything.__file__, run.stdout], 1.0, True, {}
serve(reset=lambda seed: "tinything" in sys.modules, step=step)
"""


def test_requirements_are_there_for_the_environment_and_what_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed once on the node, from wheels."""
    wheel(tmp_path / "wheels")
    write_files(tmp_path, {"env/env.py": WITH_PACKAGE, "env/requirements.txt": "tinything==1.0  # the answer\n"})
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    seen = []
    with connect(boltz_slots=1) as client:
        for mode in ("default", "boltz"):
            with RLPool(tmp_path / "env", 1, mode, client=client) as pool:
                seen.append((pool.reset(), pool.step([0])[0]))

    assert seen == [([True], [[42, "/opt/requirements/tinything.py", "42\n"]])] * 2


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
                with pool.snapshot(0) as snapshot:
                    pool.fork(0, [1])
                    pool.restore(snapshot, 2)
                copies = pool.step([0, 0, 0])[0]
    finally:
        node.stop()

    assert results == [{"count": 1}, None, None]
    assert [detail["status"] for detail in details] == ["ok", "exit", "timeout"]
    assert tasks[1] and tasks[2]
    assert again == [{"count": 2}, {"count": 1}, {"count": 1}]
    assert copies == [{"count": 3}] * 3


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


def test_recorded_episodes_are_in_the_ledger_and_play_again(client: Client, pooling: Pooling) -> None:
    """By the pool's id; one that draws from the kernel is named as what differs, where it does."""
    pool = pooling(2, record=True, seed=7)
    pool.reset(seed="ab" * 32)
    pool.step(["x = 1", "os._exit(3)"])
    pool.reset()
    pool.step([b"\0", "count = int.from_bytes(os.urandom(4), 'big')"])
    name = pool.id
    pool.close()
    rows = client.rollouts(group_id=name).rollouts
    detail = client.rollout(rows[-1].id)
    report = client.replay_group(name)

    assert [(row.kind, row.status) for row in rows[::-1]] == [
        ("episode", "exit"),
        ("episode", "unfinished"),
        ("episode", "unfinished"),
        ("episode", "unfinished"),
    ]
    assert detail.request["actions"] == ["os._exit(3)"] and '"pid":' in detail.stdout
    assert [item.differences[0].what for item in report.reports if not item.identical] == ["stdout"]


def test_a_node_without_a_ledger_records_nothing(tmp_path: Path) -> None:
    """It says so before anything has run."""
    write_files(tmp_path, {"env/env.py": ACTOR})
    with node_process(tmp_path, ledger=False) as node, connect(unix_socket=str(node.socket)) as client:
        with pytest.raises(InvalidRequest, match="keeps no ledger"):
            RLPool(tmp_path / "env", client=client, record=True)
