"""Copies of running environments through the public surface, and long lines and wide trees of them beneath it."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed import RLPool, connect
from hotbed.errors import InvalidRequest, NotFound, SandboxGone, SnapshotUnsupported
from hotbed.sdk.client import Client
from tests.support.forkable import ITEMS_PER_MIB, Environment, Forkable, run_with, write_env

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHAIN = 100
VERIFIED_EVERY = 10
DEPTH = 3
WIDTH = 10
AT_ONCE = 4
LOOK = "R = (state.log, [float(line) for line in open('/workspace/log')])"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a node of its own."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="hotbed-") as runtime:
        os.chmod(runtime, 0o700)
        patch.setenv("HOTBED_RUNTIME_DIR", runtime)
        with connect(boltz_slots=1) as client:
            yield client


@pytest.fixture(scope="module")
def env_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_env(tmp_path_factory.mktemp("livefork"))


def shown(pool: RLPool, code: str, worker: int) -> Any:
    """What code run in one worker leaves in R."""
    results, _, _, details = pool.step([code] * pool.n, mask=[index == worker for index in range(pool.n)])
    assert details[worker]["status"] == "ok", details[worker]
    return results[worker]


def test_a_snapshot_is_memory_and_files_together(client: Client, env_dir: Path) -> None:
    """Restored elsewhere it goes on as the original did, every page compared; a second time too."""
    with RLPool(env_dir, n=3, client=client) as pool:
        pool.reset(seed=3)
        pool.step([0, 0, 0])
        with pool.snapshot(0, verify=True) as snapshot:
            expected = [pool.step([0, 0, 0])[0][0] for _ in range(3)]
            pool.restore(snapshot, [1, 2], verify=True)
            found = [pool.step([0, 0, 0])[0][1:] for _ in range(3)]
            pool.restore(snapshot, 0)

            assert found == [[step, step] for step in expected]
            assert pool.step([0, 0, 0])[0][0] == expected[0]
            assert (snapshot.step, snapshot.skipped) == (1, ())
        assert shown(pool, "R = len(open('/workspace/log').readlines())", 0) == "2"


def test_forks_differ_only_by_their_seeds(client: Client, env_dir: Path) -> None:
    """The environment's own generator goes on; the interpreter's is seeded anew, and the same way each time."""
    draw = "import random; R = (state.count, state.random.random(), random.random())"

    def branch(**how: Any) -> list[Any]:
        with RLPool(env_dir, n=4, seed=11, client=client) as pool:
            pool.reset()
            pool.step([0] * 4)
            assert pool.fork(0, [1, 2, 3], **how) == [1, 2, 3]
            assert [detail["status"] for detail in pool.details] == ["ok", "forked", "forked", "forked"]
            return [eval(found) for found in pool.step([draw] * 4)[0]]

    derived, again, same = branch(), branch(), branch(seeds="same")

    assert derived == again
    assert len({found[:2] for found in derived}) == 1
    assert len({found[2] for found in derived}) == 4
    assert len(set(same)) == 1
    assert branch(seeds=[5, 5, 6])[1][2] == branch(seeds=[5, 5, 6])[2][2] == random.Random(5).random()


def test_a_snapshot_crosses_pools_of_the_same_template(client: Client, env_dir: Path) -> None:
    """And outlives the pool it was taken in; any other pool refuses it, and goes on with what it had."""
    with RLPool(env_dir, n=1, client=client) as second:
        second.reset()
        with RLPool(env_dir, n=1, client=client) as first:
            first.reset(seed=1)
            first.step([0])
            snapshot = first.snapshot()
            expected = first.step([0])[0]
        second.restore(snapshot, 0)

        assert second.step([0])[0] == expected
        for other in ({"limits": {"pids": 50}}, {"mode": "boltz"}, {"preload": True}):
            with RLPool(env_dir, n=1, client=client, **other) as third:
                third.reset()
                with pytest.raises(SnapshotUnsupported, match="another template|one state already"):
                    third.restore(snapshot, 0)
                assert third.step([0])[0][0][0] == 1
        snapshot.free()
        snapshot.free()
        with pytest.raises(NotFound):
            second.restore(snapshot, 0)


def test_what_a_preloaded_environment_built_is_not_copied(client: Client, tmp_path: Path) -> None:
    """Ten MiB that env.py builds while it is loaded are in a snapshot of it, unless the template has loaded it."""
    directory, sizes, answers = write_env(tmp_path, heap_mib=10), [], []
    for preload in (False, True):
        with RLPool(directory, n=2, preload=preload, client=client) as pool:
            pool.reset(seed=3)
            with pool.snapshot(0, verify=True) as snapshot:
                sizes.append(snapshot.size >> 20)
                pool.restore(snapshot, 1, verify=True)
            assert shown(pool, "HEAP[7]['s'] = 'mine'; R = len(HEAP)", 1) == str(10 * ITEMS_PER_MIB)
            answers.append([shown(pool, "R = HEAP[7]['s']", worker) for worker in range(2)])

    assert answers == [["'77777777'", "'mine'"]] * 2
    assert sizes[0] >= 10 > 5 > sizes[1]


def test_open_files_are_opened_again_where_they_were(client: Client, env_dir: Path) -> None:
    """Each at its offset, two descriptors of one file still sharing it, and unwritten buffers written by each copy."""
    with RLPool(env_dir, n=2, client=client) as pool:
        pool.reset()
        shown(pool, "KEEP[:] = [open('/workspace/data', 'w+')]; KEEP[0].write('abcdefgh'); KEEP[0].flush()", 0)
        shown(pool, "import os; KEEP[0].seek(3); KEEP.append(os.dup(KEEP[0].fileno())); KEEP[0].write('X')", 0)
        pool.fork(0, [1])
        look = "KEEP[0].flush(); R = (os.lseek(KEEP[1], 0, 1), open('/workspace/data').read())"

        assert shown(pool, look, 0) == shown(pool, look, 1) == repr((4, "abcXefgh"))


def test_the_end_of_the_original_is_not_the_end_of_its_copies(client: Client, env_dir: Path) -> None:
    """Nor the other way round."""
    with RLPool(env_dir, n=3, client=client) as pool:
        pool.reset()
        pool.fork(0, [1, 2])
        pool.step(["import os; os._exit(3)", 0, 0])
        results, _, done, details = pool.step([0, 0, 0])

        assert done == [True, False, False]
        assert details[0]["status"] == "exit"
        assert results[1][0] == results[2][0] == 2


def test_misuse_is_refused_before_anything_is_run(client: Client, env_dir: Path) -> None:
    """Each with its reason."""
    with RLPool(env_dir, n=2, client=client) as pool:
        with pytest.raises(InvalidRequest, match="no episode"):
            pool.snapshot(0)
        pool.reset()
        with pytest.raises(InvalidRequest, match="copy of itself"):
            pool.fork(0, [0, 1])
        with pytest.raises(InvalidRequest, match="run no episode"):
            pool.fork(0, n=1)
        with pytest.raises(InvalidRequest, match="either targets or n"):
            pool.fork(0)
        with pytest.raises(InvalidRequest, match="either targets or n"):
            pool.fork(0, 1)  # type: ignore[arg-type]  # one of the two, but which
        with pytest.raises(InvalidRequest, match="None is no snapshot"):
            pool.restore(None, 0)  # type: ignore[arg-type]  # that is the point
        with pytest.raises(InvalidRequest, match="seeds must be"):
            pool.fork(0, [1], seeds=[1, 2])
        shown(pool, "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", 0)
        with pytest.raises(SnapshotUnsupported, match="threads: 1"):
            pool.snapshot(0)
        with pool.snapshot(0, skip=True) as snapshot:
            assert snapshot.skipped[0].startswith("threads: 1")


def test_snapshots_end_with_their_lease(env_dir: Path, client: Client) -> None:
    """A client that goes away leaves none behind."""
    with RLPool(env_dir, n=1, client=client) as keeper:
        keeper.reset()
        with connect() as other:
            pool = RLPool(env_dir, n=1, client=other)
            pool.reset()
            snapshot = pool.snapshot()
            pool.close()
        with pytest.raises((NotFound, SandboxGone)):
            while True:
                keeper.restore(snapshot, 0)


def test_a_long_chain_of_copies_of_copies() -> None:
    """Each copied from the last, which is killed at once: nothing nests, nothing drifts, the sequence is exact."""

    async def chain(forkable: Forkable) -> None:
        current = await forkable.environment()
        await current.reset(seed=5)
        sequence = random.Random(5)
        for generation in range(1, CHAIN + 1):
            assert await current.step() == [generation, sequence.random(), generation]
            copy = await forkable.copy(current, verify=generation % VERIFIED_EVERY == 0)
            await current.kill()
            current = copy
        assert await current.run("R = len(open('/workspace/log').readlines())") == CHAIN
        levels = await current.run("R = [l.split()[1:] for l in open('/proc/self/status') if l.startswith('NSpid')]")
        assert levels == [["2"]]
        await forkable.template.vessels.wait_parked()
        stats = forkable.backend.stats()
        assert stats["boxes"] == 1 + stats["vessels"]
        assert len(forkable.livefork) == 0

    run_with(chain)


@pytest.mark.timeout(600)  # a thousand sandboxes on a machine that has other work
def test_a_tree_of_a_thousand_copies() -> None:
    """Ten of each, branches side by side; who has children is killed, and each leaf is exact in memory and files."""
    exact = random.Random(9)
    expected = [exact.random() for _ in range(DEPTH + 1)]
    made = 1

    async def grow(forkable: Forkable, node: Environment, depth: int, turns: asyncio.Semaphore) -> None:
        nonlocal made
        assert await node.step() == [depth + 1, expected[depth], depth + 1]
        if depth == DEPTH:
            assert await node.run(LOOK) == (expected, expected)
            return await node.kill()
        async with turns:
            snapshot = await forkable.snapshot(node, verify=False)
            await node.kill()
            children = [await forkable.restore(snapshot, verify=False) for _ in range(WIDTH)]
            await forkable.livefork.release(snapshot)
        made += len(children)
        await asyncio.gather(*(grow(forkable, child, depth + 1, turns) for child in children))

    async def tree(forkable: Forkable) -> None:
        root = await forkable.environment()
        await root.reset(seed=9)
        await grow(forkable, root, 0, asyncio.Semaphore(AT_ONCE))
        assert len(forkable.livefork) == 0

    run_with(tree)

    assert made == sum(WIDTH**depth for depth in range(DEPTH + 1)) > 1000
