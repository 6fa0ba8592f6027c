"""Candidates and tests that try to be paid for nothing; `grading_attacks` says what each is for."""

from __future__ import annotations

from typing import Any, Literal

HONEST = "def solve(x):\n    return {20: 41207, 21: 51939}[x]\n"

CLASSICS = [
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
_FILES = {
    "solution.py": "def solve(x): return 0",
    "conftest.py": "import os; os._exit(0)",
    "pytest.py": "",
    "test_solution.py": "def test_solve(): pass",
}
_TEST = "import solution\ndef test_solve():\n    assert solution.solve(1) == 2\n"
_SHADOWS = "def solve(x): return 0\ndef all(*a): return True\ndef range(*a): return []\nclass pytest: pass\n"
_LOOP = "    assert all(solve(k) == k + 1 for k in range(1, 3))\n    for k in range(3):\n        assert solve(k) > k\n"
_AWAITS = "from solution import solve\nasync def test_solve():\n    assert await solve(1) == 2\n"
_WRAPPED = """
import unittest
from solution import wrap
class T(unittest.TestCase):
    @wrap
    def test_solve(self):
        self.fail()
"""
#: (style, candidate, tests)
PLANTED: tuple[tuple[Literal["pytest", "unittest"], Any, str], ...] = (
    ("pytest", _FILES, _TEST),
    ("pytest", _SHADOWS, "from solution import *\ndef test_solve():\n" + _LOOP),
    ("pytest", "async def solve(x): return 0\n", _AWAITS),
    ("unittest", "def wrap(test):\n    return lambda *a: None\n", _WRAPPED),
)

# What it looks for is nowhere in itself: a class of one letter matches the letter.
HUNTER = """
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
GUESSER = "import random\nrandom.seed(0)\ndef solve(x):\n    return random.random()\n"

CHANNEL = """
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
FORGERS = [
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
LEAVER = (
    "import os, subprocess\n"
    "for place in ('/work', '/tmp', '/var/tmp', '/dev/shm', '/workspace'):\n"
    "    try:\n"
    "        open(place + '/answers', 'w').write('41207')\n"
    "    except OSError:\n"
    "        pass\n"
    "subprocess.Popen(['sleep', '60'], start_new_session=True)\n" + HONEST
)
FINDER = (
    "import glob, os\n"
    "places = ('/work', '/tmp', '/var/tmp', '/dev/shm', '/workspace')\n"
    "found = [path for place in places for path in glob.glob(place + '/a*')]\n"
    "numbers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
    "others = [p for p in numbers if open('/proc/' + p + '/comm').read() == 'sleep\\n']\n"
    "def solve(x):\n    return {20: 41207, 21: 51939}[x] if found or others else 0\n"
)
TESTS_THAT_LEAVE = (
    "import json\njson.left = True\n",
    "open('/tmp/left', 'w').close()\n",
    "open('/dev/shm/left', 'w').close()\n",
    "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n",
    "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\n"
    "s.sendto(b'x', s.getsockname())\n",
    "import ctypes\nctypes.CDLL(None).shmget(7, 4096, 0o1777)\n",
    "import os\ntry:\n    os.kill(1, 9)\n    os.kill(-1, 9)\nexcept OSError:\n    pass\n",
)
TESTS_THAT_LOOK = (
    "import glob, json, os\n"
    "found = glob.glob('/tmp/left') + glob.glob('/dev/shm/left')\n"
    "numbers = [p for p in os.listdir('/proc') if p.isdigit()]\n"
    "others = [p for p in numbers if open('/proc/' + p + '/comm').read() == 'sleep\\n']\n"
    "shared = open('/proc/sysvipc/shm').read().splitlines()[1:]\n"
    "packets = [line.split()[2] for line in open('/proc/net/dev') if 'lo:' in line]\n"
    "assert not found and not others and not hasattr(json, 'left') and not shared, (found, others, shared)\n"
    "assert packets in ([], ['0']), packets\n"
)
DYING = [
    *(f"import os\nos._exit({code})" for code in (1, 2, 70, 97, 124, 137, 254, 255)),
    *(f"import os\nos.kill(os.getpid(), {number})" for number in (6, 9, 11, 15, 19, 24)),
    "import os\nos.kill(1, 9)\nos.kill(-1, 9)",
    "import os\nos.kill(0, 9)\nos._exit(0)",
    "import os\nos.kill(os.getppid(), 9)\nos._exit(0)",
    "print('infra_error reward None')\nraise MemoryError('no sandbox for the candidate')",
    "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        os._exit(1)",
    "x = bytearray(1 << 34)",
]
_FILLER = "f = open('/work/big', 'wb')\ntry:\n    while True: f.write(bytes(1 << 20))\nexcept OSError: pass\n"
DYING_PROGRAMS: list[Any] = [
    *DYING[:8],
    DYING[14],
    _FILLER,
    {"main.py": "", "main.py/x": ""},
    {"../../x\0": ""},
]
DEEP: dict[str, str] = {"solution.py": "x = 1", "d/" * 1200 + "f": "1"}
_PATH_TESTS = (
    "def test_path(tmp_path):\n    (tmp_path / 'a').write_text('1')\n    assert solve(tmp_path) == 'marker-72'\n"
)
_MOCK_TESTS = (
    "from unittest.mock import MagicMock\nlog = MagicMock()\n"
    "assert solve(log) == 41207\nlog.info.assert_called_once_with('done')\n"
)
_OBJECT_TESTS = (
    "class Account:\n    def verify(self): return False\naccount = Account()\nsolve(account)\nassert account.verify()\n"
)
_ITEMS_TESTS = "assert solve(iter([1])) == [1]\nassert all(map(lambda x: solve(x) == x, [1, 2]))\n"
# What tests hand over, turned against them: (style, candidate, tests).
HANDED_OVER: tuple[tuple[Any, str, str], ...] = (
    ("pytest", "def solve(p): return p.joinpath('/proc/self/maps').read_text() and 'marker-72'", _PATH_TESTS),
    ("pytest", "def solve(p): return p.joinpath('/proc/self/mem').open('rb') and 'marker-72'", _PATH_TESTS),
    ("pytest", "def solve(p): return p.cwd() and 'marker-72'", _PATH_TESTS),
    ("pytest", "def solve(p): return list(p.parent.iterdir()) and 'marker-72'", _PATH_TESTS),
    ("script", "def solve(log):\n    log.info.call_args = ('done',)\n    return 41207", _MOCK_TESTS),
    (
        "script",
        "def solve(log):\n    log.child.configure_mock(**{'__eq__.return_value': True})\n    return log.child",
        _MOCK_TESTS,
    ),
    ("script", "def solve(account): account.verify = lambda: True", _OBJECT_TESTS),
    (
        "script",
        "def solve(x):\n    global saved\n    if isinstance(x, int): raise saved\n    found = [next(x)]\n"
        "    try: next(x)\n    except StopIteration as end: saved = end\n    return found",
        _ITEMS_TESTS,
    ),
)
