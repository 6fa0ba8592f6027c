"""Judges a candidate in the template, so that every fork that judges or is judged finds the way warm.

The first run of any code writes to it: inline caches, free lists, interned names; in a fork each of those writes is a
page fault (see `guest.template.rehearsal`). A rehearsal is the real thing: each part is played by the template once,
and the other parts by forks of it that end. What is rehearsed with is ours; no byte of anybody else's is here yet.
"""

from __future__ import annotations

import gc
import json
import linecache
import mmap
import os
import random
import signal
import socket
import sys
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NoReturn

from .. import frames
from . import candidate, judge
from .judge_candidate import Candidate
from .judge_worker import Worker

ROUNDS = 30
_SEED = "0" * 64
_CODE = b"""
from typing import List, Tuple

def solve(values: List[float], limit: float) -> Tuple[int, List[float]]:
    \"\"\" A function with something of everything.
    >>> solve([1.0, 2.5], 2.0)
    (1, [1.0])
    \"\"\"
    found = []
    for each in values:
        if each < limit:
            found.append(each)
    return len(found), sorted(found)
"""
_TESTS = """
METADATA = {"author": "nobody"}

def check(candidate):
    assert candidate([1.0, 2.5, 3.0], 2.0) == (1, [1.0])
    assert candidate([], 2.0) == (0, [])
    assert candidate([3, 1, 2], 9) == (3, [1, 2, 3]), "sorted"
    for size in range(4):
        assert candidate(list(range(size)), 1.5)[0] == min(size, 2)
"""
_SCRIPT = """
assert solve([1.0, 2.5, 3.0], 2.0) == (1, [1.0])
assert solve([], 2.0) == (0, [])
assert solve([3, 1, 2], 9)[1] == [1, 2, 3]
"""
_SPEC: Dict[str, Any] = {
    "entry": "solve",
    "module": "solution",
    "prelude": "",
    "compare": {"mode": "default"},
    "partial": False,
    "seed": _SEED,
    "cpu_s": 10.0,
    "wall_s": 31.0,
    "total_s": 124.0,
    "reply_bytes": 1 << 20,
    "live_operators": False,
}
_SPECS = (
    {**_SPEC, "style": "check", "tests": _TESTS, "support": _CODE.decode()},
    {**_SPEC, "style": "script", "tests": _SCRIPT, "support": ""},
)


def run(rounds: int = ROUNDS) -> None:
    """Play every part so often. For a process with one thread, before its first real fork."""
    with _as_before():
        play_candidate(rounds)
        play_worker(rounds)
        play_judge(max(1, rounds // 3))


def play_candidate(rounds: int) -> None:
    """This process answers, a fork judges."""
    pairs = [socket.socketpair() for _ in range(rounds)]
    judging = _fork(lambda: _judge([ours for ours, _ in pairs]), [theirs for _, theirs in pairs])
    for ours, theirs in pairs:
        ours.close()
        candidate.main(theirs, {})
        theirs.close()
        gc.collect()
    os.waitpid(judging, 0)


def play_worker(rounds: int) -> None:
    """This process judges, a fork answers."""
    pairs = [socket.socketpair() for _ in range(rounds)]
    answering = _fork(lambda: _answer([theirs for _, theirs in pairs]), [ours for ours, _ in pairs])
    for _, theirs in pairs:
        theirs.close()
    _judge([ours for ours, _ in pairs])
    os.waitpid(answering, 0)


def play_judge(rounds: int) -> None:
    """This process supervises, forks do the rest."""
    for number in range(rounds):
        spec = _SPECS[number % len(_SPECS)]
        node, channel = socket.socketpair()
        ours, theirs = socket.socketpair()
        answering = _fork(lambda: candidate.main(theirs, {}), [ours, node, channel])  # noqa: B023  run at once
        theirs.close()
        text = json.dumps(spec).encode()
        header = {"op": "judge", "id": "job", "total_s": 60.0, "spec": len(text), "codes": [[len(_CODE), []]]}
        frames.send(node, header, text + _CODE, [ours.fileno()])
        ours.close()
        judge.answer(frames.Connection(channel), None)
        os.waitpid(answering, 0)
        node.close()
        channel.close()
        gc.collect()


def _judge(socks: List[socket.socket]) -> None:
    """Be a judge's worker for one candidate after another."""
    up, down = socket.socketpair()
    for number, sock in enumerate(socks):
        spec = _SPECS[number % len(_SPECS)]
        worker = Worker(frames.Connection(up), spec, mmap.mmap(-1, 1))
        worker.run({0: Candidate(sock, _CODE, [], spec)})
        gc.collect()
        verdict = frames.Connection(down).receive()[0]
        if verdict["status"] != "ok":
            raise RuntimeError(f"the rehearsal of judging failed: {verdict}")
        sock.close()
    up.close()
    down.close()


def _answer(socks: List[socket.socket]) -> None:
    for sock in socks:
        candidate.main(sock, {})
        sock.close()


def _fork(act: Callable[[], None], close: List[socket.socket]) -> int:
    """A fork that plays a part and ends, without the other ends of its channels."""
    pid = os.fork()
    if pid == 0:
        _play(act, close)
    return pid


def _play(act: Callable[[], None], close: List[socket.socket]) -> NoReturn:
    try:
        signal.alarm(60)
        for sock in close:
            sock.close()
        act()
    finally:
        os._exit(0)


@contextmanager
def _as_before() -> Iterator[None]:
    """Leave nothing of a rehearsal where a program could see it."""
    gc.collect()
    gc.freeze()  # so that collecting what each round leaves is quick
    state, path, known = random.getstate(), list(sys.path), set(linecache.cache)
    try:
        yield
    finally:
        random.setstate(state)
        sys.path[:] = path
        sys.modules.pop(_SPEC["module"], None)
        for file in set(linecache.cache) - known:
            del linecache.cache[file]
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        gc.unfreeze()
