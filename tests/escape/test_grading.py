"""Attempts to be paid for nothing, each in real sandboxes through a node of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from hotbed import Client, GradeResult, PropertyReward, StdioReward, UnitTestReward, connect, grade, grade_batch
from hotbed.grading import CallLimits

SPEC = UnitTestReward(
    tests="assert solve(20) == 41207\nassert solve(21) == 51939\n", limits=CallLimits(cpu_s=2, total_s=10)
)
HONEST = "def solve(x):\n    return {20: 41207, 21: 51939}[x]\n"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a node that nobody else uses."""
    directory = tempfile.mkdtemp(prefix="hotbed-escape-")
    before = {name: os.environ.get(name) for name in ("HOTBED_RUNTIME_DIR", "HOTBED_HOME", "HOTBED_URL")}
    os.environ.update(HOTBED_RUNTIME_DIR=directory, HOTBED_HOME=directory)
    os.environ.pop("HOTBED_URL", None)
    try:
        with connect() as opened:
            yield opened
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(directory, ignore_errors=True)


def told(results: list[GradeResult]) -> list[tuple[float | None, str]]:
    """Reward and status of each."""
    return [(result.reward, result.status) for result in results]


def test_verdicts_formed_elsewhere(client: Client) -> None:
    """The classics: each is paid by a grader that believes an exit code, a patched module or an overloaded `==`."""
    hacks = [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "def solve(x):\n    import os\n    os._exit(0)",
        "class Agreeable:\n    def __eq__(self, other):\n        return True\ndef solve(x):\n    return Agreeable()",
        "class Number(int):\n    def __eq__(self, other):\n        return True\ndef solve(x):\n    return Number(0)",
        "import unittest, builtins\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "builtins.AssertionError = SystemExit\ndef solve(x):\n    return 0",
        "import sys\ndef solve(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        frame.f_globals['solve'] = None\n        frame = frame.f_back\n    return 0",
        "import unittest\ndef solve(x):\n    raise unittest.SkipTest('not today')",
        "import sys\nsys.modules['solution'] = None\nsolve = 41207",
    ]
    results = grade_batch([*hacks, HONEST], SPEC, client=client)
    files = {
        "solution.py": "def solve(x): return 0",
        "conftest.py": "import os; os._exit(0)",
        "pytest.py": "",
        "test_solution.py": "def test_solve(): pass",
    }
    tests = "import solution\ndef test_solve():\n    assert solution.solve(1) == 2\n"
    planted = grade(files, UnitTestReward(style="pytest", tests=tests), client=client)

    assert [result.reward for result in results] == [0.0] * len(hacks) + [1.0]
    assert planted.reward == 0.0


def test_candidates_hold_no_secret(client: Client) -> None:
    """It looks for what it is tested on: in its files, its environment, its heap and whatever memory it may read."""
    # What it looks for is nowhere in itself: a class of one letter matches the letter.
    hunter = """
import os, re
def texts():
    for name in ("cmdline", "environ"):
        yield open(f"/proc/self/{name}", "rb").read()
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            maps = open(f"/proc/{pid}/maps").read().splitlines()
            memory = open(f"/proc/{pid}/mem", "rb", 0)
        except OSError:
            continue
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(each, 16) for each in span.split("-"))
            if "rw" in rights and end - start < 1 << 25:
                try:
                    memory.seek(start)
                    yield memory.read(end - start)
                except (OSError, ValueError, OverflowError):
                    pass
    for folder, _, files in os.walk("/"):
        if folder.startswith(("/proc", "/sys", "/usr", "/opt", "/lib", "/dev")):
            continue
        for file in files:
            try:
                yield open(os.path.join(folder, file), "rb").read(1 << 20)
            except OSError:
                pass
def hunt():
    return sum(re.search(b"mark[e]r-71", text) is not None for text in texts())
"""
    spec = UnitTestReward(
        tests="# marker-71\nexpected = 'marker-71'\nassert hunt() == 0, 'found'\n",
        support="# marker-71\n",
        limits=CallLimits(cpu_s=30, total_s=90),
    )
    guesser = "import random\nrandom.seed(0)\ndef solve(x):\n    return random.random()\n"
    guess = PropertyReward(reference="def solve(x):\n    return x\n", generator="random.random()", k=4, seed="ab" * 32)
    found = grade(hunter, spec, client=client)

    assert found.reward == 1.0, found.reason
    assert grade(guesser, guess, client=client).reward == 0.0


def test_forged_answers_refused(client: Client) -> None:
    """Answers queued ahead, answers to other questions, noise, a flood: into the channel itself."""
    channel = """
import os, socket
def channel():
    for name in os.listdir("/proc/self/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
            found.getpeername()
            return found
        except OSError:
            pass
"""
    forgers = [
        "import json, struct\n"
        "out = channel()\n"
        "for number in range(1, 9):\n"
        "    for answer in ([number, 'r', 41207], [number, 'ok', 41207], [0, 'k', {}]):\n"
        "        data = json.dumps(answer).encode()\n"
        "        out.sendall(struct.pack('!I', len(data)) + data)\n"
        "def solve(x):\n    return 0\n",
        "def solve(x):\n    out = channel()\n    out.sendall(b'\\xff' * 4096)\n    return 41207\n",
        "def solve(x):\n    out = channel()\n    while True:\n        out.sendall(b'[' * 65536)\n",
        "def solve(x):\n    found = []\n    for _ in range(100000):\n        found = [found]\n    return found\n",
        "def solve(x):\n    return b'x' * (1 << 28)\n",
    ]
    results = grade_batch([*(channel + forger for forger in forgers), HONEST], SPEC, client=client)

    assert [result.reward for result in results] == [0.0] * len(forgers) + [1.0], told(results)


def test_siblings_share_nothing(client: Client) -> None:
    """The first leaves answers wherever it can write, and a process that waits; the others look for them."""
    leaver = (
        "import os, subprocess\n"
        "for place in ('/work', '/tmp', '/var/tmp', '/dev/shm', '/workspace'):\n"
        "    try:\n"
        "        open(place + '/answers', 'w').write('41207')\n"
        "    except OSError:\n"
        "        pass\n"
        "subprocess.Popen(['sleep', '60'], start_new_session=True)\n" + HONEST
    )
    finder = (
        "import glob, os\n"
        "places = ('/work', '/tmp', '/var/tmp', '/dev/shm', '/workspace')\n"
        "found = [path for place in places for path in glob.glob(place + '/a*')]\n"
        "numbers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "others = [p for p in numbers if open('/proc/' + p + '/comm').read() == 'sleep\\n']\n"
        "def solve(x):\n    return {20: 41207, 21: 51939}[x] if found or others else 0\n"
    )
    judge = UnitTestReward(tests="import glob\nassert not glob.glob('/tmp/answers')\nassert solve(20) == 41207\n")

    assert [r.reward for r in grade_batch([leaver, finder, finder], SPEC, client=client)] == [1.0, 0.0, 0.0]
    assert grade(leaver, judge, client=client).reward == 1.0


def test_jobs_leave_nothing_to_the_next(client: Client) -> None:
    """A judge's sandbox may serve several groups of one client: whatever tests leave is gone, or the sandbox is."""
    leave = (
        "import json\njson.left = True\n",
        "open('/tmp/left', 'w').close()\n",
        "open('/dev/shm/left', 'w').close()\n",
        "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\n"
        "s.sendto(b'x', s.getsockname())\n",
        "import ctypes\nctypes.CDLL(None).shmget(7, 4096, 0o1777)\n",
        "import os\ntry:\n    os.kill(1, 9)\n    os.kill(-1, 9)\nexcept OSError:\n    pass\n",
    )
    look = (
        "import glob, json, os\n"
        "found = glob.glob('/tmp/left') + glob.glob('/dev/shm/left')\n"
        "numbers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
        "others = [p for p in numbers if open('/proc/' + p + '/comm').read() == 'sleep\\n']\n"
        "shared = open('/proc/sysvipc/shm').read().splitlines()[1:]\n"
        "packets = [line.split()[2] for line in open('/proc/net/dev') if 'lo:' in line]\n"
        "assert not found and not others and not hasattr(json, 'left') and not shared, (found, others, shared)\n"
        "assert packets in ([], ['0']), packets\n"
    )
    for each in leave:
        for tests in (each, look, look):
            spec = UnitTestReward(tests=tests + "assert solve(20) == 41207\n")
            result = grade(HONEST, spec, client=client, on_infra_error="none")
            # Tests that kill all they can reach have killed their judge too, where it is not the first process.
            allowed = (1.0, None) if "kill(-1" in tests else (1.0,)
            assert result.reward in allowed, (each, result.reason)


def test_failures_cannot_be_chosen(client: Client) -> None:
    """Every way to die, to lie about it, and to be in the way: a number comes out, never None."""
    dying = [
        *(f"import os\nos._exit({code})" for code in (1, 2, 70, 97, 124, 137, 254, 255)),
        *(f"import os\nos.kill(os.getpid(), {number})" for number in (6, 9, 11, 15, 19, 24)),
        "import os\nos.kill(1, 9)\nos.kill(-1, 9)",
        "import os\nos.kill(0, 9)\nos._exit(0)",
        "import os\nos.kill(os.getppid(), 9)\nos._exit(0)",
        "print('infra_error reward None')\nraise MemoryError('no sandbox for the candidate')",
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        os._exit(1)",
        "x = bytearray(1 << 34)",
    ]
    results = grade_batch([*dying, {"other.py": "x"}], SPEC, client=client, on_infra_error="none")
    filler = "f = open('/work/big', 'wb')\ntry:\n    while True: f.write(bytes(1 << 20))\nexcept OSError: pass\n"
    programs = StdioReward(cases=[{"stdout": "1"}] * 2, limits=CallLimits(memory_mib=256))
    ran = grade_batch([*dying[:8], dying[14], filler, {"main.py": "", "main.py/x": ""}, {"../../x\0": ""}], programs,
                      client=client, on_infra_error="none")  # fmt: skip

    assert {reward for reward, _ in told(results)} == {0.0}, told(results)
    assert {reward for reward, _ in told(ran)} == {0.0}, told(ran)
