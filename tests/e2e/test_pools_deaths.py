"""Pools in real sandboxes: what may die around a worker, many workers, many steps."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hotbed import Client, RLPool, connect
from hotbed.errors import InvalidRequest
from tests.e2e.pooling import ACTOR, Pooling, boxes_in_use, client, host_pid_of, parent_of, pooling, wait_until
from tests.e2e.published_pool import write_files

__all__ = ["client", "pooling"]

pytestmark = pytest.mark.slow


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


def pool_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node and an environment that only this test has."""
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    write_files(tmp_path, {"env/env.py": ACTOR})


def kill_node(tmp_path: Path) -> None:
    """As the kernel would that is out of memory."""
    os.kill(int((tmp_path / "run" / "node.pid").read_text()), signal.SIGKILL)


def test_the_nodes_death_is_told_and_the_pool_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a step: no reward and why, again and again, until a reset; then the same episodes as ever."""
    pool_of_its_own(tmp_path, monkeypatch)
    with connect() as client, RLPool(tmp_path / "env", 2, seed=7, client=client) as pool:
        pool.reset()
        first = pool.id
        pool.step_async(["time.sleep(5)", "1"])
        kill_node(tmp_path)
        batches = [pool.step_wait(), pool.step(["1", "1"])]
        tasks = pool.reset()
        _, rewards, _, details = pool.step(["1", "1"])

        for _, told, _, entries in batches:
            assert told[0] is None and entries[0]["status"] == "lost"
            assert "the node that it ran on has ended" in entries[0]["reason"]
            assert all(entry["step_ms"] >= 0 for entry in entries)
        assert all(tasks) and None not in rewards and {entry["status"] for entry in details} == {"ok"}
        assert pool.id != first


def test_a_replay_recovers_from_the_nodes_death_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a new worker of a new node; no worker is taken for one that still has to answer."""
    pool_of_its_own(tmp_path, monkeypatch)
    with connect() as client, RLPool(tmp_path / "env", 2, recover="replay", client=client) as pool:
        pool.reset()
        pool.step(["1", "2"])
        pool.step_async(["time.sleep(1)", "time.sleep(1)"])
        kill_node(tmp_path)
        _, rewards, _, details = pool.step_wait()
        assert None not in rewards and [entry.get("recovered") for entry in details] == [True, True]
        assert all(pool.reset())


def test_a_pool_whose_folder_has_changed_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its episodes would be others, and nobody would know."""
    pool_of_its_own(tmp_path, monkeypatch)
    with connect() as client, RLPool(tmp_path / "env", 1, client=client) as pool:
        pool.reset()
        pool.step_async(["time.sleep(5)"])
        kill_node(tmp_path)
        pool.step_wait()
        (tmp_path / "env/env.py").write_text(ACTOR + "# changed\n")
        for _ in range(2):
            with pytest.raises(InvalidRequest, match="has changed"):
                pool.reset()


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
