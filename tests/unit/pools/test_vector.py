"""n environments as lists in the order of the workers; misuse runs nothing, and one worker's trouble stays its own."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from hotbed.errors import (
    EnvFailed,
    EpisodeDone,
    InvalidRequest,
    NotReset,
    PoolBusy,
    PoolClosed,
)
from tests.unit.pools.conftest import COUNTER, Pooling

DEATHS = [
    ("os._exit(7)", "exit", "exit code 7"),
    ("os._exit(0)", "exit", "exit code 0"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "signal", "signal 11"),
    ("raise KeyError('code')", "error", "KeyError: 'code'"),
    ("sys.exit(2)", "error", "SystemExit: 2"),
    ("os.write(3, b'x' * 100)", "protocol", "broke the protocol"),
    ("os.write(3, b'\\xff' * 8)", "protocol", "exceeds the limit"),
    ("os.write(3, b'\\0\\0\\0\\2\\0\\0\\0\\0{}')", "protocol", "another request"),
    ("os.close(3); time.sleep(60)", "exit", "closed its lane"),
]


def test_tasks_and_steps_come_in_the_order_of_the_workers(pooling: Pooling) -> None:
    """The example of the published page, with two workers."""
    pool, _ = pooling(2)

    tasks = pool.reset(seed=[11, 12])
    results, rewards, done, details = pool.step([None, {"code": "x"}])

    assert tasks == [{"task": 11}, {"task": 12}]
    assert results == [{"count": 1}, {"count": 1}]
    assert (rewards, done) == ([1.0, 1.0], [False, False])
    assert [detail["status"] for detail in details] == ["ok", "ok"]
    assert [detail["seed"] for detail in details] == [11, 12]


def test_details_carry_what_the_environment_said_and_what_we_measured(pooling: Pooling) -> None:
    """Its info both merged and whole."""
    pool, _ = pooling(1)
    pool.reset(seed=5)
    detail = pool.step([0])[3][0]

    assert {"note": "n", "info": {"note": "n"}, "index": 0, "episode": 0, "step": 1}.items() <= detail.items()
    assert detail["isolation"] == "none"
    assert 0 <= detail["env_ms"] <= detail["step_ms"]
    assert (detail["terminated"], detail["truncated"], detail["reason"]) == (False, False, "")


@pytest.mark.parametrize(("statement", "status", "reason"), DEATHS)
def test_one_workers_trouble_is_its_entry_and_nobody_elses(
    pooling: Pooling, statement: str, status: str, reason: str
) -> None:
    """And the entry reads well where the published page prints `results[0] or details[0]`."""
    pool, _ = pooling(3)
    pool.reset()

    results, rewards, done, details = pool.step([0, statement, 0])

    assert [results[0], results[2]] == [{"count": 1}, {"count": 1}]
    assert (results[1], rewards[1], done) == (None, 0.0, [False, True, False])
    assert list(details[1])[:2] == ["status", "reason"]
    assert details[1]["status"] == status
    assert reason in details[1]["reason"]


@pytest.mark.parametrize(("statement", "status", "reason"), DEATHS)
def test_a_worker_that_failed_plays_again_after_its_reset(
    pooling: Pooling, statement: str, status: str, reason: str
) -> None:
    """In a fresh process, unless it only raised an exception."""
    pool, workers = pooling(2)
    pool.reset()
    pool.step([0, statement])

    tasks = pool.reset(seed=9, mask=[False, True])
    results = pool.step([0, 0])[0]

    assert tasks == [None, {"task": 10}]
    assert results == [{"count": 2}, {"count": 1}]
    assert workers.opened == ([0, 1] if status == "error" else [0, 1, 1])


def test_a_failed_worker_stands_at_its_failure_until_reset(pooling: Pooling) -> None:
    """A loop over steps must not break because of one worker; nothing is run in it."""
    pool, _ = pooling(2)
    pool.reset()
    first = pool.step(["raise ValueError(1)", 0])
    again = pool.step([0, 0])

    assert again[0] == [None, {"count": 2}]
    assert again[3][0]["reason"] == first[3][0]["reason"]


def test_a_hang_is_a_timeout_after_the_deadline_and_the_others_have_their_results(pooling: Pooling) -> None:
    """Two that hang cost one deadline, not two."""
    pool, workers = pooling(3, step_timeout_s=0.2)
    pool.reset()

    results, _, done, details = pool.step(["time.sleep(60)", 0, "time.sleep(60)"])

    assert [detail["status"] for detail in details] == ["timeout", "ok", "timeout"]
    assert "the worker was killed" in details[0]["reason"]
    assert 200 <= details[2]["step_ms"] < 350
    assert (results[1], done) == ({"count": 1}, [True, False, True])
    assert workers.ended == [0, 2]


def test_trickling_bytes_do_not_stretch_a_deadline(pooling: Pooling) -> None:
    """A worker that is always just about to answer."""
    pool, _ = pooling(1, step_timeout_s=0.3)
    pool.reset()
    trickle = "os.write(3, b'\\0\\0\\xff\\xff\\0\\0\\0\\0')\nwhile True:\n    os.write(3, b' ')\n    time.sleep(0.01)"

    detail = pool.step([trickle])[3][0]

    assert detail["status"] == "timeout"
    assert detail["step_ms"] < 450


def test_a_worker_that_speaks_unasked_has_failed(pooling: Pooling) -> None:
    """An answer queued ahead must not be taken for the next step's."""
    pool, _ = pooling(1)
    pool.reset()
    ahead = (
        'os.write(3, b\'\\0\\0\\0\\x34\\0\\0\\0\\0\' + b\'{"step":[0,9.0,false,false,{}],"id":3,"us":0}\'.ljust(52))'
    )
    pool.step([f"import threading; threading.Timer(0, lambda: {ahead}).start()"])

    answers = [pool.step([0])]
    while answers[-1][3][0]["status"] == "ok" and len(answers) < 20:  # it may come a moment after one asked for
        answers.append(pool.step([0]))

    _, rewards, _, details = answers[-1]
    assert rewards == [0.0]
    assert details[0]["status"] == "protocol"


@pytest.mark.parametrize("text", ["raise RuntimeError('at import')", "import no_such_thing", "x ="])
def test_an_env_that_cannot_be_loaded_gives_tasks_that_say_why(pooling: Pooling, text: str) -> None:
    """Reading such a task raises; the batch goes on, and `details` has the traceback's tail."""
    pool, _ = pooling(2, text)

    tasks = pool.reset()
    _, rewards, done, details = pool.step([0, 0])

    assert not any(tasks)
    with pytest.raises(EnvFailed, match="worker 1 has no task"):
        tasks[1]["task"]
    assert (rewards, done) == ([0.0, 0.0], [True, True])
    assert "env.py" in details[0]["reason"]
    assert pool.details == details


def test_a_reset_that_fails_is_that_workers_alone(pooling: Pooling) -> None:
    """Here for every odd seed."""
    text = COUNTER.replace('return {"task": seed}', 'return {"task": 1 // (1 - seed % 2)}')
    pool, _ = pooling(3, text)

    tasks = pool.reset(seed=0)

    assert [bool(task) for task in tasks] == [True, False, True]
    assert "ZeroDivisionError" in pool.details[1]["reason"]


def test_a_worker_nobody_can_start_is_lost_without_a_reward(pooling: Pooling) -> None:
    """None, not 0.0: it was not the environment's doing."""
    pool, workers = pooling(2)
    workers.refuse.add(1)
    pool.reset()

    _, rewards, done, details = pool.step([0, 0])

    assert (rewards, done) == ([1.0, None], [False, True])
    assert (details[1]["status"], details[1]["reason"]) == ("lost", "no room")


def test_a_worker_killed_from_outside_between_steps_is_noticed_by_the_next(pooling: Pooling) -> None:
    """Not by the others."""
    pool, workers = pooling(2)
    pool.reset()
    workers.kill(0)

    _, _, done, details = pool.step([0, 0])

    assert (done, details[0]["status"]) == ([True, False], "signal")


# --- misuse ---


def test_a_step_before_the_first_reset_is_refused(pooling: Pooling) -> None:
    """For the workers it concerns."""
    pool, _ = pooling(2)
    with pytest.raises(NotReset, match="workers 0, 1"):
        pool.step([0, 0])
    pool.reset(mask=[True, False])
    with pytest.raises(NotReset, match="workers 1 "):
        pool.step([0, 0])


def test_a_step_on_an_episode_that_is_over_is_refused(pooling: Pooling) -> None:
    """Its neighbours can be stepped with a mask."""
    pool, _ = pooling(2, "from hotbed.env import serve\nserve(lambda s: 0, lambda a: (a, 0, a, {}))")
    pool.reset()
    _, _, done, _ = pool.step([True, False])
    with pytest.raises(EpisodeDone, match="workers 0 "):
        pool.step([False, False])

    results, _, still, details = pool.step([False, False], mask=[not one for one in done])

    assert (results, still) == ([None, False], [True, False])
    assert details[0]["status"] == "skipped"


def test_a_closed_pool_refuses_everything_and_closing_is_idempotent(pooling: Pooling) -> None:
    """With the error that says so."""
    pool, _ = pooling(1)
    pool.reset()
    pool.close()
    pool.close()

    for call in (lambda: pool.reset(), lambda: pool.step([0]), lambda: pool.send([0]), lambda: pool.output(0)):
        with pytest.raises(PoolClosed):
            call()


def test_a_forked_child_may_not_use_the_pool_and_its_end_harms_nobody(pooling: Pooling) -> None:
    """Trainers fork data loaders."""
    pool, _ = pooling(2)
    pool.reset()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pool.step([0, 0])
        except PoolClosed:
            code = 0
        finally:
            pool.close()
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0

    assert pool.step([0, 0])[2] == [False, False]


# --- asynchronous use ---


def test_step_async_and_step_wait_are_step_in_two_halves(pooling: Pooling) -> None:
    """With time between them for the caller."""
    pool, _ = pooling(2)
    pool.reset()
    pool.step_async([0, 0])
    with pytest.raises(PoolBusy):
        pool.step_async([0, 0])
    with pytest.raises(PoolBusy):
        pool.reset()

    assert pool.step_wait()[0] == [{"count": 1}, {"count": 1}]
    with pytest.raises(NotReset, match="step_wait without"):
        pool.step_wait()


def test_the_keeper_is_told_how_long_the_client_was_held_up(pooling: Pooling) -> None:
    """At the latest when the pool is closed: it cannot see the lanes."""
    pool, workers = pooling(2)
    pool.reset()
    pool.step([0, 0])
    pool.close()

    assert sum(count for _, _, _, count in workers.spans) == 2
    assert all(0 <= waited <= begun - ended for begun, ended, waited, _ in workers.spans)


def test_recv_gives_the_first_to_finish_and_leaves_the_rest(pooling: Pooling) -> None:
    """As EnvPool's send and recv."""
    pool, _ = pooling(3)
    pool.reset()
    pool.send(["time.sleep(0.2)", 0, 0])

    early = pool.recv(2)
    pool.send([0], [early[3][0]["index"]])
    late = pool.recv()

    assert sorted(detail["index"] for detail in early[3]) == [1, 2]
    assert 0 in [detail["index"] for detail in late[3]]
    assert len(late[0]) == 2
    with pytest.raises(InvalidRequest, match="of 0 workers under way"):
        pool.recv()


def test_one_pool_serves_several_threads_one_call_at_a_time(pooling: Pooling) -> None:
    """Calls do not mix up each other's answers."""
    pool, _ = pooling(2, COUNTER.replace("count >= 3", "False"))
    pool.reset()
    seen: list[int] = []

    def steps() -> None:
        for _ in range(20):
            seen.append(pool.step([0, 0])[0][0]["count"])

    threads = [threading.Thread(target=steps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(seen) == list(range(1, 81))


# --- autoreset ---


def test_next_step_resets_instead_of_stepping_the_episode_that_is_over(pooling: Pooling) -> None:
    """gymnasium's NEXT_STEP: that action is ignored, the reward 0."""
    pool, _ = pooling(1, autoreset="next_step")
    pool.reset()
    done = [pool.step([0])[2] for _ in range(3)][-1]

    results, rewards, after, details = pool.step([0])

    assert (done, after, rewards) == ([True], [False], [0.0])
    assert (list(results[0]), details[0]["reset"], details[0]["episode"]) == (["task"], True, 1)


def test_same_step_shows_the_next_task_and_keeps_the_last_observation(pooling: Pooling) -> None:
    """gymnasium's SAME_STEP."""
    pool, _ = pooling(2, autoreset="same_step")
    pool.reset()
    results, rewards, done, details = [pool.step([0, 0]) for _ in range(3)][-1]

    assert (done, rewards) == ([True, True], [1.0, 1.0])
    assert list(results[0]) == ["task"]
    assert details[0]["final_observation"] == {"count": 3}
    assert details[0]["final_info"] == {"note": "n"}
    assert pool.step([0, 0])[0] == [{"count": 1}, {"count": 1}]


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_autoreset_brings_a_dead_worker_back(pooling: Pooling, autoreset: str) -> None:
    """A long training run goes on."""
    pool, _ = pooling(2, autoreset=autoreset)
    pool.reset()
    details = pool.step(["os._exit(1)", 0])[3]
    pool.step([0, 0])
    results = pool.step([0, 0])[0]

    assert details[0]["status"] == "exit"
    assert results[0] in ({"count": 1}, {"count": 2})


# --- output and closing ---


def test_what_env_py_prints_is_readable(pooling: Pooling) -> None:
    """Not mixed into the lane."""
    pool, _ = pooling(1)
    pool.reset()
    pool.step(["print('seen', flush=True)"])

    assert pool.output(0).stdout == "seen\n"


def test_the_authors_close_is_called_but_not_waited_for_long(pooling: Pooling, tmp_path: Any) -> None:
    """It may hang like anything else."""
    text = COUNTER.replace("step=step)", "step=step, close=lambda: (open('closed', 'w').close(), time.sleep(60)))")
    pool, _ = pooling(1, f"import os; os.chdir({str(tmp_path)!r})\n{text}", step_timeout_s=0.2)
    pool.reset()
    pool.close()

    assert (tmp_path / "closed").exists()
