"""What the tests of pools in real sandboxes share: a node of their own, pools that leave nothing, one environment."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed import Client, RLPool, connect

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
