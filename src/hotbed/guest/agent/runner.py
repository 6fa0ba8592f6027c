"""Runs one program in a fork of the warm interpreter, as `python main.py` would.

The program gets a fresh `__main__`, its own argv, stdio, environment and working directory, and nothing of ours: no
module, no descriptor, no signal handler. What Python does after a script ends is done here too (threads joined, atexit,
flush, objects of `__main__` released), except that the interpreter is then left by _exit: to tear down every preloaded
module would touch each page that is shared with the template. What a program can still see is our frames below its own
(`sys._getframe`); a traceback does not show them.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import linecache
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple, Type

from .. import forkhooks, kernel
from .child import become
from .orderlog import OrderLog
from .pinning import Pinning
from .reseed import reseed
from .stdio import Stdio

FILENAME = "<code>"
_STDIO_ONLY = 4  # three, and the one that lists them
_WRITERS = (io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
_LOST_OUTPUT = 120  # what Python exits with when its last flush fails
PINNING = Pinning()


# By names of their own, so that a rehearsal can leave these steps out (see `warming`).
_exit, _closerange = os._exit, os.closerange
_join_threads: Callable[[], None] = threading._shutdown  # type: ignore[attr-defined]  # what the interpreter itself calls at its end
_run_exitfuncs = atexit._run_exitfuncs


class Work(NamedTuple):
    """One program and what it starts with. With a `pin` it gets a channel, or had one `ahead` of the work."""

    source: bytes
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    cwd: str = "/"
    entropy: Optional[bytes] = None
    pin: Optional[str] = None
    ahead: bool = False


def start(
    work: Work, stdio: Stdio, log: Optional[OrderLog], fds: Sequence[int], channel: Optional[int] = None
) -> NoReturn:
    """In a fork of the agent: become the program, whose stdin, stdout and stderr are `fds`. Never returns."""
    try:
        run(work, stdio, log, become(*fds, keep=channel))
    finally:
        os._exit(70)  # only if our own code failed: nothing of it may run on in the agent's place


def run(work: Work, stdio: Stdio, log: Optional[OrderLog], channel: Optional[int] = None) -> NoReturn:
    """Run the program and exit as it would; the process is already detached from the agent."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    if channel is not None:
        work = pin(work, channel)
    assert log is not None
    reseed(work.entropy)
    prepare(work, stdio, log)
    number = conclude(execute(work.source), stdio)
    if number < 0:
        die_of(signal.Signals(-number))
    mine, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime
    log.announce(number, int(seconds * 1e6), max(mine.ru_maxrss, children.ru_maxrss))
    _closerange(1, 3)  # the agent sees both ends of file and the announcement at once
    _exit(number)


def pin(work: Work, channel: int) -> Work:
    """Make this process reproducible before anything else."""
    forkhooks.release()  # what hooks draw is not the program's: a spare may have run them already
    return work._replace(entropy=PINNING.enter(_socket_of(channel), work.pin or "rng"))


def wait_pinned(channel: int) -> Tuple[bytes, bytes]:
    """The same ahead of the work (see `Pinning.wait`)."""
    forkhooks.release()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # as when the work begins: the supervisor writes into this process
    return PINNING.wait(_socket_of(channel))


def _socket_of(channel: int) -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, channel)


def prepare(work: Work, stdio: Stdio, log: OrderLog) -> None:
    """What the program finds in `os` and `sys`."""
    environ = os.environ
    for name in work.env:
        environ[name] = work.env[name]
    stdio.install(log)
    gc.enable()
    sys.argv[:] = ["main.py", *work.args]
    sys.path.insert(0, work.cwd)


def execute(source: bytes) -> int:
    """Run the source as `__main__`; its exit code, or minus the signal that it should die of."""
    space = fresh_main(on_disk(source) if b"multiprocessing" in source or b"ProcessPool" in source else FILENAME)
    linecache.cache[FILENAME] = (len(source), None, source.decode("utf-8", "replace").splitlines(True), FILENAME)
    try:
        exec(compile(source, FILENAME, "exec", dont_inherit=True), space)
    except BaseException as error:  # noqa: BLE001  # boundary: the program's, whatever it is
        return outcome_of(error)
    return 0


def on_disk(source: bytes) -> str:
    """A file with the program, which processes that `multiprocessing` starts afresh will run; its path."""
    import shutil  # seldom needed: in every template they would cost each fork pages
    import tempfile

    directory = tempfile.mkdtemp(prefix="main-")
    atexit.register(shutil.rmtree, directory, True)
    path = os.path.join(directory, "main.py")
    with open(path, "wb") as file:
        file.write(source)
    return path


def fresh_main(filename: str) -> Dict[str, Any]:
    """The namespace of a new `__main__`, as a script's is."""
    module = ModuleType("__main__")
    space = module.__dict__
    space.update(__annotations__={}, __builtins__=builtins, __file__=filename, __cached__=None)
    sys.modules["__main__"] = module
    return space


def outcome_of(error: BaseException) -> int:
    """What the interpreter does with an exception that nobody caught; the exit code, or minus the signal to die of."""
    if isinstance(error, SystemExit):
        return exit_code_of(error.code)
    report(type(error), error, error.__traceback__ and error.__traceback__.tb_next)  # the first frame is `execute`
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def exit_code_of(code: object) -> int:
    """The exit code of `sys.exit(code)`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stderr.write(f"{code}\n")
    except Exception:  # noqa: BLE001  # boundary: str() of the program's object, or its stream, may raise anything
        pass
    return 1


def report(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
    """Print the traceback, or let the program's own hook do it."""
    error.__traceback__ = trace
    try:
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(kind, error, trace)
        else:
            # The built-in hook looks for a file of that name instead of asking linecache before 3.13.
            traceback.print_exception(kind, error, trace)
    except BaseException as second:  # noqa: BLE001  # boundary: a hook or a stream of the program may raise anything
        report_both(second, error, sys.__stderr__)


def report_both(second: BaseException, first: BaseException, stream: Any) -> None:
    """A hook failed: print its failure, and what it should have printed."""
    for title, error in (("Error in sys.excepthook:\n", second), ("\nOriginal exception was:\n", first)):
        try:
            stream.write(title)
            traceback.print_exception(type(error), error, error.__traceback__, file=stream)
        except BaseException:  # noqa: BLE001  # boundary: an exception of the program may fail to be printed
            pass


def conclude(number: int, stdio: Stdio) -> int:
    """What Python does after a script: join threads, run atexit handlers, flush, release `__main__`."""
    try:
        _join_threads()
    except KeyboardInterrupt as error:
        number = outcome_of(error)
    _run_exitfuncs()
    whole = stdio.flush()
    release_main()
    whole = stdio.flush() and whole
    return number if whole or number else _LOST_OUTPUT


def release_main() -> None:
    """Drop what `__main__` holds, so that finalizers run, and write out the files that are still open.

    Cycles are left alone: to look for them is expensive, and Python promises no finalizer at exit.
    """
    space = sys.modules["__main__"].__dict__
    kept = ("__builtins__", "__name__")
    for name in [name for name in space if name[:1] == "_"] + [name for name in space if name[:1] != "_"]:
        if name not in kept:
            space[name] = None
    if has_files():
        for thing in gc.get_objects():  # those older than the fork are frozen, and not listed
            if isinstance(thing, _WRITERS):
                flush_quietly(thing)


def has_files() -> bool:
    """Whether anything is open beside the three streams. The size of the folder tells, since Linux 6.2."""
    count = os.stat("/proc/self/fd").st_size
    return count > 3 if count else len(os.listdir("/proc/self/fd")) > _STDIO_ONLY


def flush_quietly(stream: Any) -> None:
    """Write out a file that the program left open in a place we do not know."""
    try:
        if not stream.closed:
            stream.flush()
    except Exception:  # noqa: BLE001  # boundary: a subclass of the program may raise anything
        pass


def die_of(number: signal.Signals) -> NoReturn:
    """End by a signal, as Python does after an uncaught KeyboardInterrupt."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
