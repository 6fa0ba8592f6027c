"""What happens to a program is what would happen to `python main.py`."""

from __future__ import annotations

import os
import signal

import pytest

from hotbed.guest.agent import runner
from tests.unit.guest.agent_process import AgentProcess


def test_a_traceback_shows_the_program_s_lines_and_not_ours(agent: AgentProcess) -> None:
    """From the first frame of the program on, with source."""
    result = agent.run("code", "def f(x):\n    return 1 / x\n\nf(0)\n")

    lines = result.stderr.decode().splitlines()
    assert lines[:3] == ["Traceback (most recent call last):", '  File "<code>", line 4, in <module>', "    f(0)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "runner" not in result.stderr.decode()
    assert (result.status, result.exit_code) == ("exit", 1)


def test_a_syntax_error_is_shown_as_python_shows_it(agent: AgentProcess) -> None:
    """With the line and no frame."""
    result = agent.run("code", "x = (\n")

    assert result.stderr.startswith(b'  File "<code>", line 1\n')
    assert b"SyntaxError" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("statement", "code", "stderr"),
    [
        ("sys.exit()", 0, b""),
        ("sys.exit(7)", 7, b""),
        ("sys.exit(256 + 5)", 5, b""),
        ("sys.exit(-1)", 255, b""),
        ("sys.exit('why')", 1, b"why\n"),
        ("sys.exit((1, 2))", 1, b"(1, 2)\n"),
        ("raise SystemExit(True)", 1, b""),
        ("exit(4)", 4, b""),
    ],
)
def test_exit_codes_are_python_s(agent: AgentProcess, statement: str, code: int, stderr: bytes) -> None:
    """`sys.exit` takes more than numbers."""
    result = agent.run("code", f"import sys\nprint('before')\n{statement}\nprint('after')")

    assert (result.exit_code, result.stdout, result.stderr) == (code, b"before\n", stderr)


def test_keyboard_interrupt_dies_of_the_signal(agent: AgentProcess) -> None:
    """So that a shell would notice."""
    result = agent.run("code", "raise KeyboardInterrupt")

    assert (result.status, result.signal, result.exit_code) == ("signal", signal.SIGINT, None)
    assert result.stderr.endswith(b"KeyboardInterrupt\n")


def test_what_python_does_at_the_end_is_done(agent: AgentProcess) -> None:
    """Threads joined, atexit run, finalizers called, files and streams flushed, in that order."""
    result = agent.run(
        "code",
        "import atexit, sys, threading, time\n"
        "class D:\n    def __del__(self): print('finalized')\n"
        "d = D()\nf = open('kept.txt', 'w')\nf.write('to the end')\n"
        "box = [open('also.txt', 'w')]\nbox[0].write('too')\nbox.append(box)\n"
        "atexit.register(print, 'atexit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
        "sys.stdout.write('main')\nsys.stdout.write(' ended\\n')\n",
    )
    files = agent.run("command", "cat kept.txt also.txt")

    assert result.stdout == b"main ended\nthread\natexit\nfinalized\n"
    assert files.stdout == b"to the endtoo"


def test_exceptions_in_hooks_do_not_hide_the_first(agent: AgentProcess) -> None:
    """A program's own excepthook is used, and may be broken."""
    own = agent.run("code", "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1/0")
    broken = agent.run("code", "import sys\nsys.excepthook = lambda *a: 1 + ''\n1/0")

    assert (own.stdout, own.exit_code) == (b"mine ZeroDivisionError\n", 1)
    assert b"TypeError" in broken.stderr
    assert broken.exit_code == 1


def test_a_program_may_close_its_streams(agent: AgentProcess) -> None:
    """Then there is nothing to flush, and nothing to complain about."""
    result = agent.run("code", "import sys, os\nprint('x')\nsys.stdout.close()\nos.close(2)")

    assert result.stdout == b"x\n"


def test_os_exit_and_signals_are_reported(agent: AgentProcess) -> None:
    """Without any of our code having its say."""
    left = agent.run("code", "import os\nprint('lost')\nos._exit(9)")
    died = agent.run("code", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")

    assert (left.status, left.exit_code) == ("exit", 9)
    assert (died.status, died.signal) == ("signal", signal.SIGSEGV)


def test_main_is_a_module_like_any_script_s(agent: AgentProcess) -> None:
    """Pickling, inspection and dataclasses look there."""
    result = agent.run(
        "code",
        "import __main__, inspect, pickle, sys, typing\n"
        "class A:\n    x: 'int' = 1\n"
        "print(__name__, A.__module__, pickle.loads(pickle.dumps(A())).x, typing.get_type_hints(A)['x'])\n"
        "print(inspect.getsource(A).splitlines()[0], sys.modules['__main__'] is __main__, __file__)",
    )

    assert result.stderr == b""
    assert result.stdout == b"__main__ __main__ 1 <class 'int'>\nclass A: True <code>\n"


def test_annotations_are_evaluated_as_the_program_says(agent: AgentProcess) -> None:
    """Our own `from __future__` must not leak into the compilation."""
    result = agent.run("code", "def f(x: int): pass\nprint(f.__annotations__)")

    assert result.stdout == b"{'x': <class 'int'>}\n"


def test_processes_and_threads_work(agent: AgentProcess) -> None:
    """multiprocessing, subprocess and os.fork, from a process that was forked without ceremony."""
    result = agent.run(
        "code",
        "import multiprocessing, os, subprocess, sys, threading\n"
        "def work(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n        print(pool.map(work, range(4)))\n"
        "    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout.strip())\n"
        "    pid = os.fork()\n    if pid == 0:\n        print('child')\n        sys.exit(5)\n"
        "    print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), threading.active_count())\n",
    )

    assert result.stderr == b""
    assert result.stdout == b"[0, 1, 4, 9]\nsub\nchild\nparent 5 1\n"


def test_sigpipe_is_ignored_as_in_python_and_default_in_its_children(agent: AgentProcess) -> None:
    """`yes | head` inside a program must end."""
    result = agent.run(
        "code", "import signal, os\nprint(signal.getsignal(signal.SIGPIPE).name)\nos.system('yes | head -n 1')"
    )

    assert result.stdout == b"SIG_IGN\ny\n"


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (0, 0), (513, 1), (False, 0), (-2, 254)])
def test_exit_code_of(code: object, exit_code: int) -> None:
    """As the operating system will have it."""
    assert runner.exit_code_of(code) == exit_code


SPAWNING = """
import multiprocessing, os
def double(x):
    return 2 * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]), os.path.basename(__file__))
"""


def test_processes_started_afresh_find_the_program(agent: AgentProcess) -> None:
    """They read it from its file, which is gone afterwards."""
    result = agent.run("code", SPAWNING, timeout_s=20.0)
    assert (result.status, result.stdout) == ("ok", b"[2, 4] main.py\n"), result.stderr

    left = agent.run("code", "import glob; print(glob.glob('/tmp/main-*'))")
    assert b"main-" not in left.stdout


@pytest.mark.parametrize("told", [True, False])
def test_open_files_are_noticed(told: bool) -> None:
    """By the folder's size where the kernel tells it, else by its list. In a fork, for the test runner has many."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.closerange(3, 4096)
            if not told:
                os.stat = lambda path: os.stat_result([0] * 10)  # type: ignore[assignment, misc]  # of this fork
            none = runner.has_files()
            os.dup(0)
            code = 0 if (none, runner.has_files()) == (False, True) else 2
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
