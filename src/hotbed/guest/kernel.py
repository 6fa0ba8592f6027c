"""System calls that the standard library lacks, through ctypes.

Everything goes through libc's `syscall`, so that a template can warm the one path that all of them share. The numbers
are those of x86_64; `SUPPORTED` says whether they mean anything here, and nothing below may be called where they do
not.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Optional, Tuple, Union

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_MOVE = 8192
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38

NR_WRITE = 1
NR_OPEN = 2
NR_CLOSE = 3
NR_DUP2 = 33
NR_WAIT4 = 61
NR_CHDIR = 80
NR_MKDIR = 83
NR_CAPSET = 126
NR_PIVOT_ROOT = 155
NR_PRCTL = 157
NR_CHROOT = 161
NR_MOUNT = 165
NR_UMOUNT2 = 166
NR_SETHOSTNAME = 170
NR_UNSHARE = 272
NR_DUP3 = 292
NR_SETNS = 308
NR_SCHED_SETATTR = 314
NR_SECCOMP = 317
NR_PIDFD_SEND_SIGNAL = 424
NR_PIDFD_OPEN = 434
NR_CLOSE_RANGE = 436

SUPPORTED = platform.machine() == "x86_64"

_Word = Union[int, bytes, None]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
_libc.signal.restype = ctypes.c_void_p
_exit = ctypes.cast(_libc._exit, ctypes.c_void_p)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 6

# struct __user_cap_header_struct (version 3, this thread) and two all-zero __user_cap_data_struct: capabilities(7).
CAP_HEADER = struct.pack("Ii", 0x20080522, 0)
CAP_NONE = bytes(24)

#: A system call as it is, with all words that the kernel reads: numbers of 32 bits, bytes, None. -1 if it failed, and
#: `failure` tells why when it is asked at once. It touches as little as a call from Python can, and keeps the
#: interpreter's lock: not for calls that wait.
bare = ctypes.PyDLL(None).syscall
fork = ctypes.PyDLL(None).fork  # -1 if it failed, as with `bare`
_errno_location = ctypes.PyDLL(None)["__errno_location"]
_errno_location.restype = ctypes.c_void_p
_status = (ctypes.c_int * 1)()
_usage = (ctypes.c_long * 18)()  # struct rusage


def failure() -> OSError:
    """Why the last `bare` call of this thread failed."""
    code = ctypes.c_int.from_address(_errno_location()).value
    return OSError(code, os.strerror(code))


def call(number: int, a: _Word = 0, b: _Word = 0, c: _Word = 0, d: _Word = 0, e: _Word = 0, f: _Word = 0) -> int:
    """One system call. Raises `OSError` with its errno."""
    result = _syscall(number, a, b, c, d, e, f)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def unshare(flags: int) -> None:
    """Leave the namespaces named by flags for new ones."""
    if bare(NR_UNSHARE, flags) == -1:
        raise failure()


def setns(fd: int, kind: int) -> None:
    """Enter the namespace that fd names."""
    if bare(NR_SETNS, fd, kind) == -1:
        raise failure()


def mount(source: Optional[bytes], target: bytes, fstype: Optional[bytes], flags: int, data: Optional[bytes]) -> None:
    """mount(2)."""
    call(NR_MOUNT, source, target, fstype, flags, data)


def umount(target: bytes, flags: int = MNT_DETACH) -> None:
    """umount2(2), lazily unless told otherwise."""
    call(NR_UMOUNT2, target, flags)


def pivot_root(new: bytes, old: bytes) -> None:
    """pivot_root(2)."""
    call(NR_PIVOT_ROOT, new, old)


def prctl(option: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
    """prctl(2)."""
    return call(NR_PRCTL, option, a, b, c, d)


def keep_capabilities(mask: int) -> None:
    """Keep only these of the first 32 in the effective and permitted set, and none in any other."""
    call(NR_CAPSET, CAP_HEADER, struct.pack("6I", mask, mask, 0, 0, 0, 0))


def empty_bounding_set() -> None:
    """Give up, for this process and all its descendants, every capability that an exec could bring back."""
    failed = 0
    for capability in CAPABILITIES:
        failed |= bare(NR_PRCTL, PR_CAPBSET_DROP, capability)
    if failed:
        raise OSError("the capability bounding set could not be emptied")


def _capabilities() -> range:
    with open("/proc/sys/kernel/cap_last_cap") as file:
        return range(int(file.read()) + 1)


CAPABILITIES = _capabilities()


def close_from(lowest: int) -> None:
    """Close every descriptor from `lowest` up, in one call where the kernel has it (Linux 5.9)."""
    if bare(NR_CLOSE_RANGE, lowest, 0xFFFFFFFF, 0) == -1:
        os.closerange(lowest, os.sysconf("SC_OPEN_MAX"))


def pidfd_open(pid: int) -> int:
    """A descriptor that stands for a process for as long as it exists and beyond."""
    pidfd: int = bare(NR_PIDFD_OPEN, pid, 0)
    if pidfd == -1:
        raise failure()
    return pidfd


def pidfd_kill(pidfd: int, signal: int) -> None:
    """Signal exactly the process that the descriptor stands for."""
    if bare(NR_PIDFD_SEND_SIGNAL, pidfd, signal, None, 0) == -1:
        raise failure()


def reap(pid: int) -> Tuple[int, int, int]:
    """Wait for a child that has ended: its wait status, the CPU it used in microseconds, its greatest size in KiB.

    wait4(2) without the standard library's, which imports `resource` each time. For a process with one thread.
    """
    if bare(NR_WAIT4, pid, _status, 0, _usage) == -1:
        raise failure()
    cpu_us = (_usage[0] + _usage[2]) * 1_000_000 + _usage[1] + _usage[3]
    return _status[0], cpu_us, _usage[4]


def exit_at(signal: int) -> None:
    """End this process with the signal's number as its exit code when it comes, whatever it is doing then.

    For the pid 1 of a namespace: signals whose action is the default one do not reach it.
    """
    _libc.signal(signal, _exit)


def take_short_turns(slice_ns: int) -> None:
    """Ask the scheduler for turns of this length: no more of a CPU, but sooner after each wake-up. Not for children.

    sched(7); Linux before 6.12 takes note and does nothing. The kernel's least is 0.1 ms.
    """
    reset_on_fork, nice = 1, os.getpriority(os.PRIO_PROCESS, 0)
    call(NR_SCHED_SETATTR, 0, struct.pack("IIQiIQQQ", 48, 0, reset_on_fork, nice, 0, slice_ns, 0, 0), 0)


def trim_heap() -> None:
    """Give back what is free inside the C library's heap: a fork copies the mapping of each page that is there."""
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


class Filter:
    """A seccomp program in memory, ready to be installed by this process and its forks."""

    def __init__(self, program: bytes) -> None:
        """`program` is an array of struct sock_filter."""
        self._code = ctypes.create_string_buffer(program, len(program))
        prog = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(self._code))  # struct sock_fprog
        self.words = (NR_SECCOMP, 1, 0, prog)  # of the call that installs it, SECCOMP_SET_MODE_FILTER

    def install(self) -> None:
        """Add it to this thread, for good. Needs no_new_privs or CAP_SYS_ADMIN."""
        if bare(*self.words) == -1:
            raise failure()
