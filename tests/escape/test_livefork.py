"""Attempts on what copies environments. Each attacks from the environment server itself, the code that is copied."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import Error, SnapshotUnsupported
from tests.support.forkable import Environment, Forkable, run_with

RIGHTS = """
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(w) if isinstance(w, int) else ctypes.c_char_p(w) for w in words])
    return "DONE" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def enter(name):
    try:
        fd = os.open(name, os.O_RDONLY)
    except OSError as error:
        return errno.errorcode[error.errno]
    try:
        return call(308, fd, 0)
    finally:
        os.close(fd)
ALL = struct.pack("6I", *[0xFFFFFFFF] * 2, 0, *[0xFFFFFFFF] * 2, 0)
R = {
    "capset": call(126, struct.pack("Ii", 0x20080522, 0), ALL),
    "bounding set": call(157, 24, 21, 0, 0, 0), "ambient set": call(157, 47, 2, 21, 0, 0),
    "securebits": call(157, 28, 0, 0, 0, 0), "setresuid": call(117, 1, 1, 1), "setgroups": call(116, 0, 0),
    "setns own mnt": enter("/proc/self/ns/mnt"), "setns own pid": enter("/proc/self/ns/pid"),
    "setns agent mnt": enter("/proc/1/ns/mnt"), "setns agent user": enter("/proc/1/ns/user"),
    **{f"unshare {flag:x}": call(272, flag) for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x4000000)},
    **{f"clone {flag:x}": call(56, flag | 17, 0, 0, 0, 0) for flag in (0x10000000, 0x20000, 0x20000000)},
    "mount": call(165, b"x", b"/tmp", b"tmpfs", 0, 0), "umount": call(166, b"/proc", 2), "chroot": call(161, b"/tmp"),
    "pivot_root": call(155, b"/", b"/"), "open_tree": call(428, -100, b"/", 1), "fsopen": call(430, b"tmpfs", 0),
    "ptrace": call(101, 0x4206, 1, 0, 0), "readv": call(310, 1, 0, 0, 0, 0, 0), "kcmp": call(312, 1, 2, 0, 0, 0),
    "userfaultfd": call(323, 1), "bpf": call(321, 0, b"", 0), "io_uring": call(425, 1, bytes(120)),
    "open_by_handle": call(304, -100, bytes(32), 0), "clone3": call(435, bytes(88), 88),
    "agent's memory": enter("/proc/1/mem"), "agent's root": enter("/proc/1/root"), "agent's files": enter("/proc/1/fd"),
}
"""
VIEW = """
import os
R = {
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "caps": [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
    "filters": [line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp"))],
    "namespaces": [os.readlink("/proc/self/ns/" + kind) for kind in ("user", "mnt", "pid", "net", "ipc", "uts")],
}
"""


def test_copies_have_no_rights() -> None:
    """Neither an original, nor its copy, nor the copy's copy can get a right, or use what a copy is made with."""

    async def attack(forkable: Forkable) -> None:
        original = await forkable.environment()
        await original.reset()
        copy = await forkable.copy(original)
        for environment in (original, copy, await forkable.copy(copy)):
            found = await environment.run(RIGHTS)
            assert {name for name, result in found.items() if result == "DONE"} == set()
            view = await environment.run(VIEW)
            assert set(view["caps"]) == {"0" * 16}
            assert view["filters"][0] == "1" and view["filters"][1] == "2"

    run_with(attack)


def test_copies_keep_to_their_sandbox() -> None:
    """A copy is in namespaces of its own, sees two processes and its lane, and shares no file with its original."""

    async def attack(forkable: Forkable) -> None:
        original = await forkable.environment()
        await original.reset()
        await original.run("open('/workspace/secret', 'w').write('before')")
        copies = [await forkable.copy(original) for _ in range(2)]
        await original.run("open('/workspace/secret', 'w').write('after')")
        views = [await environment.run(VIEW) for environment in (original, *copies)]

        for view in views:
            assert view["processes"] == [1, 2]
            assert view["descriptors"] == [0, 1, 2, 3]
        for kind in range(6):
            assert len({view["namespaces"][kind] for view in views}) == 3
        assert [await copy.run("R = open('/workspace/secret').read()") for copy in copies] == ["before"] * 2
        await copies[0].run("import os; os.unlink('/workspace/secret')")
        assert await copies[1].run("R = open('/workspace/secret').read()") == "before"
        assert await original.run("R = open('/workspace/secret').read()") == "after"
        await original.kill()
        assert (await copies[0].step())[0] == 1  # the end of the original is not the end of its copies

    run_with(attack)


def test_snapshots_hold_nothing_of_others() -> None:
    """A copy has no byte of another environment of the same template, nor of another snapshot, freed or not."""

    async def attack(forkable: Forkable) -> None:
        secret = "KEEP.append(bytes([83]) + b'ecret-of-a-sibling-' + bytes(range(40, 60)) * 5000)"
        sibling, original = await forkable.environment(), await forkable.environment()
        for environment in (sibling, original):
            await environment.reset()
        await sibling.run(secret)
        kept, freed = await forkable.snapshot(sibling), await forkable.snapshot(sibling)
        await forkable.livefork.release(freed)
        copy = await forkable.copy(original)
        found = await copy.run(SEARCH)

        assert forkable.livefork.is_alive(kept)
        assert found == 0
        assert await (await forkable.restore(kept)).run(SEARCH) > 0  # the search finds what is there

    run_with(attack)


SEARCH = """
needle, rest = bytes([83]) + b"ecret-of-a-sib" + bytes([108]) + b"ing-", bytes(range(40, 60))
R = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if line.split()[1][0] == "r" and "[v" not in line:
            memory.seek(start)
            try:
                pieces = memory.read(end - start).split(needle)
            except OSError:
                continue
            R += sum(piece.startswith(rest) for piece in pieces[1:])
            del pieces
"""

HOSTILE = {
    "memory that it gave back": "import mmap; m = mmap.mmap(-1, 1 << 20, 2); m[:] = bytes([7]) * (1 << 20); m.close()",
    "memory that it emptied": """
import mmap
KEEP.append(mmap.mmap(-1, 1 << 20, 2))
KEEP[-1][:] = bytes([7]) * (1 << 20)
KEEP[-1].madvise(4, 4096, 65536)
""",
    "a page that may be written and run": """
import mmap
KEEP.append(mmap.mmap(-1, 4096, flags=34, prot=7))
KEEP[-1][:2] = b"ab"
""",
    "a page that nobody may read": """
import ctypes, mmap
KEEP.append(mmap.mmap(-1, 8192, flags=34, prot=3))
KEEP[-1][:3] = b"abc"
address = ctypes.addressof(ctypes.c_char.from_buffer(KEEP[-1]))
R = ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), 4096, 0)
""",
    "changed code of a library": """
import ctypes
libc = ctypes.CDLL(None)
page = ctypes.cast(libc.labs, ctypes.c_void_p).value & ~4095
R = libc.mprotect(ctypes.c_void_p(page), 4096, 7)
ctypes.memmove(page + 4000, ctypes.string_at(page + 4000, 8), 8)
libc.mprotect(ctypes.c_void_p(page), 4096, 5)
""",
    "libraries of its own": """
import ctypes, decimal, sqlite3
KEEP.append(ctypes.CDLL("libm.so.6"))
R = str(decimal.Decimal(2).sqrt())
""",
    "a deep stack": """
import sys
sys.setrecursionlimit(9000)
def down(n): return n and down(n - 1)
R = down(8000)
""",
    "signals that it handles": """
import faulthandler, signal
signal.signal(signal.SIGUSR1, lambda *_: KEEP.append("usr1"))
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
faulthandler.enable(open("/workspace/faults", "w"))
""",
    "limits that it lowered": """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
os.umask(0o77)
os.chdir("/tmp")
os.close(0)
os.dup2(os.open("/workspace/out", os.O_CREAT | os.O_WRONLY), 1)
""",
}


@pytest.mark.timeout(120)
def test_hostile_originals_are_copied_as_they_are() -> None:
    """Whatever an original has done to its own memory, its copy is the same page by page, and has no more rights."""

    async def attack(forkable: Forkable) -> None:
        for what, code in HOSTILE.items():
            original = await forkable.environment()
            await original.reset()
            await original.run(code)
            copy = await forkable.copy(original)
            assert (await copy.step())[0] == 1, what
            assert (await original.step())[0] == 1, what
            assert {name for name, result in (await copy.run(RIGHTS)).items() if result == "DONE"} == set(), what
            await original.kill()
            await copy.kill()

    run_with(attack)


LOST = {
    "thread": "import threading; e = threading.Event(); threading.Thread(target=e.wait, daemon=True).start()",
    "child process": "import subprocess; KEEP.append(subprocess.Popen(['sleep', '60']))",
    "defunct": "import subprocess, time; KEEP.append(subprocess.Popen(['true'])); time.sleep(0.2)",
    "socket": "import socket; KEEP.append(socket.socket())",
    "pipe": "import os; KEEP.append(os.pipe())",
    "a pipe": "import os; KEEP.append(os.pipe()); os.dup2(KEEP[0][1], 1); [os.close(fd) for fd in KEEP[0]]",
    "System V msg": "import ctypes; R = ctypes.CDLL(None).msgget(7, 0o1600) >= 0",
    "working folder": "import os; os.mkdir('/tmp/gone'); os.chdir('/tmp/gone'); os.rmdir('/tmp/gone')",
    "eventpoll": "import select; KEEP.append(select.epoll())",
    "shared mapping": "import mmap; KEEP.append(mmap.mmap(-1, 4096))",
    "deleted": "import os; KEEP.append(open('/tmp/x', 'w')); os.unlink('/tmp/x')",
    "interval timer": "import signal; signal.signal(14, lambda *_: None); signal.setitimer(0, 60)",
    "seccomp filter": """
import ctypes, struct
program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), 8)
header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)), 16)
R = ctypes.CDLL(None).syscall(317, 1, 0, header)
""",
}


@pytest.mark.timeout(120)
def test_nothing_is_lost_silently() -> None:
    """What cannot be copied is named and refused, or named and skipped; the original goes on either way."""

    async def attack(forkable: Forkable) -> None:
        for what, code in LOST.items():
            original = await forkable.environment()
            await original.reset()
            await original.run(code)
            with pytest.raises(SnapshotUnsupported, match=what):
                await forkable.snapshot(original)
            snapshot = await forkable.snapshot(original, skip=True, verify=False)
            copy = await forkable.restore(snapshot, verify=False)
            assert any(what in name for name in snapshot.skipped), (what, snapshot.skipped)
            assert (await copy.step())[0] == (await original.step())[0] == 1
            await original.kill()
            await copy.kill()

    run_with(attack)


BUSY = {
    "computing": "while True: pass",
    "asleep": "import time; time.sleep(60)",
    "another program": "import os; os.execv('/bin/sleep', ['sleep', '60'])",
    "stopped": "import os; os.kill(os.getpid(), 19)",
    "reading elsewhere": "import os; os.read(os.pipe()[0], 1)",
}


@pytest.mark.timeout(120)
def test_busy_originals_are_left_alone() -> None:
    """One that is not waiting for a request is refused in time, unharmed; nobody else waits for it."""

    async def attack(forkable: Forkable) -> None:
        quiet = await forkable.environment()
        await quiet.reset()
        for what, code in BUSY.items():
            original = await forkable.environment()
            await original.reset()
            asked = asyncio.ensure_future(original.run(code))
            await asyncio.sleep(0.3)
            with pytest.raises(Error):
                await forkable.snapshot(original)
            assert not original.program.end.done(), what
            await _step_a_copy(forkable, quiet)
            asked.cancel()
            await original.kill()

    run_with(attack)


async def _step_a_copy(forkable: Forkable, original: Environment) -> None:
    copy = await forkable.copy(original)
    assert (await copy.step())[0] == 1
    await copy.kill()


def test_nobody_is_left_stopped() -> None:
    """An original that is killed while it is copied, and a keeper that is, cost that copy and nothing else."""

    async def attack(forkable: Forkable) -> None:
        original, other = await forkable.environment(), await forkable.environment()
        await original.reset()
        await other.reset()
        taking = [asyncio.ensure_future(forkable.snapshot(original)) for _ in range(3)]
        await asyncio.sleep(0.001)
        await original.kill()
        outcomes: list[Any] = await asyncio.gather(*taking, return_exceptions=True)
        assert all(isinstance(one, Error) or not isinstance(one, BaseException) for one in outcomes), outcomes
        await _step_a_copy(forkable, other)
        assert (await other.step())[0] == 1

    run_with(attack)
