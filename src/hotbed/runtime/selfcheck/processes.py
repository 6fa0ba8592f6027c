"""Attempts on processes: the agent's, the host's, the neighbours', and those that should be dead."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

from hotbed.runtime.base import ExecRequest
from hotbed.runtime.selfcheck.bench import Attempt, Bench, code_in, hold, shell_in

_START_VARIABLES = ("LD_LIBRARY_PATH", "LD_BIND_NOW", "PYTHONPATH", "PYTHONHASHSEED")
_AGENT = """
import ctypes, json, os
opened = []
for name in 'mem environ maps auxv syscall stack root/etc/passwd cwd/etc/passwd fd/0 fd/3 fd/4 ns/mnt'.split():
    for flags in (os.O_RDONLY, os.O_RDWR):
        try:
            fd = os.open("/proc/1/" + name, flags)
            opened += [name] if name.count("/") or os.read(fd, 1) else []
            os.close(fd)
        except OSError:
            pass
traced = ctypes.CDLL(None).ptrace(16, 1, 0, 0)
print(json.dumps({"opened": opened, "traced": traced}))
"""
_SIGNALS = """
import os
for number in range(1, 65):
    try:
        os.kill(1, number)
    except (OSError, ValueError):
        pass
print("alive")
"""
_STARVING = """
import json, os, resource
def reached(call, *arguments):
    try:
        call(*arguments)
        return True
    except OSError:
        return False
taken = [kind for kind in range(16) if reached(resource.prlimit, 1, kind, (0, 0))]
turns = [
    reached(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0)),
    reached(os.sched_setaffinity, 1, {min(os.sched_getaffinity(0))}),
    reached(os.setpriority, os.PRIO_PROCESS, 1, 19),
    reached(os.setpriority, os.PRIO_USER, 0, 19),
]
print(json.dumps({"limits": taken, "turns": turns}))
"""
_STUBBORN = """
import os, signal, sys, time
print("before", flush=True)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
        time.sleep(1000)
        os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(1000)
"""
# Whoever was killed may take a moment to die where many others want the CPUs. An agent, a waiting spare, sh and ls.
_FEW_ARE_LEFT = """
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=$(ls -d /proc/[0-9]*)
    [ $(echo "$left" | wc -l) -gt 4 ] || exit 0
    sleep 0.2
done
echo "$left"
exit 1
"""
_MARKS = """
import ctypes, os, socket, threading, time
open("/tmp/mark", "w").write("x")
open("/dev/shm/mark", "w").write("x")
server = socket.socket(socket.AF_UNIX)
server.bind("\\0hotbed-mark")
server.listen()
tcp = socket.socket()
tcp.bind(("127.0.0.1", 47123))
tcp.listen()
ctypes.CDLL(None).semget(4711, 1, 0o1666)
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2):
        os.close(fd)
    time.sleep(100)
print("marked")
"""
_LOOK = """
import ctypes, json, os, socket
def reached(family, address):
    try:
        socket.socket(family).connect(address)
        return True
    except OSError:
        return False
print(json.dumps({
    "file": os.path.exists("/tmp/mark"), "shm": os.path.exists("/dev/shm/mark"),
    "abstract": reached(socket.AF_UNIX, "\\0hotbed-mark"), "port": reached(socket.AF_INET, ("127.0.0.1", 47123)),
    "semaphore": ctypes.CDLL(None).semget(4711, 1, 0) != -1,
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]) > 3,
    "terminal": len(os.listdir("/dev/pts")) > 1,
}))
"""
_DESCRIPTORS = """
import json, os
def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False
print(json.dumps([fd for fd in range(3, 1024) if is_open(fd)]))
"""
_SEARCH = """
import re, sys
pattern = re.compile(sys.argv[1].encode())
found = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        span, rights = line.split()[:2]
        if rights[0] != "r" or "[v" in line:
            continue
        low, high = (int(word, 16) for word in span.split("-"))
        memory.seek(low)
        try:
            if pattern.search(memory.read(high - low)):
                found.append(line)
        except OSError:
            pass
print("".join(found), end="")
"""


async def agent_memory_closed(bench: Bench) -> None:
    """From code in the warm interpreter and from a program, as the same user."""
    found = await bench.answer(_AGENT)
    hold(found["opened"] == [], f"of the agent's could be opened: {found['opened']}")
    hold(found["traced"] == -1, "the agent could be traced")
    outcome = await bench.shell("cat /proc/1/environ /proc/1/maps; ls /proc/1/root/; cat /proc/1/fd/*")
    hold(outcome.stdout == b"", f"of the agent's could be read: {outcome.stdout[:100]!r}")


async def agent_survives_signals(bench: Bench) -> None:
    """Every signal to pid 1, then to everything."""
    async with bench.box() as box:
        outcome = await code_in(box, _SIGNALS)
        hold(outcome.stdout == b"alive\n", f"{outcome.status} after signals to pid 1")
        everything = await shell_in(box, "kill -9 -1; kill -STOP -1")
        hold(everything.status in ("signal", "ok", "exit"), f"{everything.status} after kill -9 -1")
        again = await shell_in(box, "echo still here")
        hold(again.stdout == b"still here\n", "the agent did not survive")


async def agent_keeps_its_limits(bench: Bench) -> None:
    """Every limit of pid 1, and its turns on the CPU; then it has to keep time and serve as before."""
    async with bench.box() as box:
        outcome = await code_in(box, _STARVING)
        hold(
            outcome.stdout == b'{"limits": [], "turns": [false, false, false, false]}\n', f"{outcome.stdout!r} of pid 1"
        )
        again = await shell_in(box, "echo still here")
        hold(again.stdout == b"still here\n", f"{again.status} after its limits were attacked")


async def host_processes_unseen(bench: Bench) -> None:
    """The node by its number, and every number there is but the low ones, which the sandbox's own processes have."""
    source = f"""
import json, os
def reached(pid):
    try:
        os.kill(pid, 0)
        return True
    except PermissionError:
        return True
    except OSError:
        return False
print(json.dumps([pid for pid in [{os.getpid()}, *range(100, 33000)] if pid >= 100 and reached(pid)]))
"""
    reached = await bench.answer(source)
    hold(reached == [], f"processes {reached[:5]} can be named")
    listed = await bench.answer(
        "import json, os; print(json.dumps([int(n) for n in os.listdir('/proc') if n.isdigit()]))"
    )
    hold(all(pid < 100 for pid in listed), f"processes {listed} are listed")


async def siblings_unseen(bench: Bench) -> None:
    """What one sandbox leaves everywhere it can, looked for in another that lives at the same time."""
    async with bench.box() as one, bench.box() as other:
        marked = await code_in(one, _MARKS)
        hold(marked.stdout == b"marked\n", f"the attempt failed: {marked.stderr[-500:]!r}")
        looked = await code_in(other, _LOOK)
        hold(b"true" not in looked.stdout and looked.status == "ok", f"a sibling is seen: {looked.stdout!r}")


async def timeout_kills_the_tree(bench: Bench) -> None:
    """A program that stops itself, ignores what can be ignored, and has daemons."""
    async with bench.box() as box:
        began = time.monotonic()
        outcome = await code_in(box, _STUBBORN, timeout_s=1.0)
        took = time.monotonic() - began
        hold(outcome.status == "timeout", f"status {outcome.status}")
        hold(outcome.stdout == b"before\n", f"what it had printed is {outcome.stdout!r}")
        hold(took < 4.0, f"it took {took:.1f} s")
        left = await shell_in(box, _FEW_ARE_LEFT)
        hold(left.status == "ok", f"left: {left.stdout!r}")


async def orphans_die_with_the_sandbox(bench: Bench) -> None:
    """Daemons of a sandbox, looked for on the host after its end."""
    async with bench.box() as box:
        await shell_in(box, "for i in 1 2 3 4; do (setsid sleep 1000 >/dev/null 2>&1 &) ; done")
        deadline = time.monotonic() + 5.0
        while len(mine := _sleepers(bench.population())) < 4:
            hold(time.monotonic() < deadline, f"the attempt failed: {len(mine)} daemons were seen")
            await asyncio.sleep(0.01)
    left = await bench.wait_extinct(mine)
    hold(left == set(), f"processes {left} outlived their sandbox")


def _sleepers(pids: set[int]) -> set[int]:
    found = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\x00":
                found.add(pid)
        except OSError:
            continue  # it has ended meanwhile
    return found


async def no_inherited_descriptors(bench: Bench) -> None:
    """In code and in a command."""
    extra = await bench.answer(_DESCRIPTORS)
    hold(extra == [], f"code starts with {extra}")
    outcome = await bench.shell("ls /proc/self/fd")
    hold(outcome.stdout.split() in ([b"0", b"1", b"2"], [b"0", b"1", b"2", b"3"]), f"a command has {outcome.stdout!r}")


async def node_environment_unseen(bench: Bench) -> None:
    """The values of the node's variables, in the environment and in all memory of the warm interpreter."""
    secrets = [value for value in os.environ.values() if len(value) >= 16 and re.fullmatch(r"[\w-]+", value)]
    for secret in secrets[:5]:
        pattern = "".join(f"[{letter}]" for letter in secret)  # the pattern does not contain what it finds
        async with bench.box() as box:
            request = ExecRequest(kind="code", program=_SEARCH.encode(), args=(pattern,))
            outcome = await box.exec(request)
        hold(outcome.status == "ok" and outcome.stdout == b"", f"found in {outcome.stdout!r} {outcome.stderr[-300:]!r}")
    names = (await bench.shell("cat /proc/*/environ | tr '\\0' '\\n' | cut -d= -f1 | sort -u")).stdout.decode().split()
    allowed = {*"PATH HOME LANG TERM USER LOGNAME PWD OLDPWD SHLVL _".split(), *_START_VARIABLES}
    hold(set(names) <= allowed, f"variables seen: {sorted(set(names) - allowed)}")


ATTEMPTS = (
    Attempt(claim="agent-memory-closed", run=agent_memory_closed),
    Attempt(claim="agent-survives-signals", run=agent_survives_signals),
    Attempt(claim="agent-keeps-its-limits", run=agent_keeps_its_limits),
    Attempt(claim="host-processes-unseen", run=host_processes_unseen),
    Attempt(claim="siblings-unseen", run=siblings_unseen),
    Attempt(claim="timeout-kills-the-tree", run=timeout_kills_the_tree),
    Attempt(claim="orphans-die-with-the-sandbox", run=orphans_die_with_the_sandbox),
    Attempt(claim="no-inherited-descriptors", run=no_inherited_descriptors),
    Attempt(claim="node-environment-unseen", run=node_environment_unseen),
)
