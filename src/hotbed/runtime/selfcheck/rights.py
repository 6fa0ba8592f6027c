"""Attempts on identity and rights."""

from __future__ import annotations

import errno
from pathlib import Path

from hotbed.runtime.selfcheck.bench import Attempt, Bench, hold, shell_in

_CAPABILITIES = """
import json
fields = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({name: fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")}))
"""
_PRIVILEGED = """
import ctypes, errno, json, os, stat
libc = ctypes.CDLL(None, use_errno=True)
def refused(call):
    try:
        result = call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return errno.errorcode[ctypes.get_errno()] if result == -1 else "DONE"
print(json.dumps({
    "mount": refused(lambda: libc.mount(b"t", b"/mnt", b"tmpfs", 0, None)),
    "remount": refused(lambda: libc.mount(None, b"/usr", None, 4096 | 32, None)),
    "umount": refused(lambda: libc.umount2(b"/proc", 2)),
    "chroot": refused(lambda: os.chroot("/tmp")),
    "device": refused(lambda: os.mknod("/tmp/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))),
    "setuid": refused(lambda: os.setuid(1)),
    "setgroups": refused(lambda: os.setgroups([0])),
    "nice": refused(lambda: os.nice(-5)),
}))
"""
_NAMESPACES = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
def refused(*words):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(*words) == -1 else "DONE"
flags = {"user": 0x10000000, "mnt": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000}
print(json.dumps({**{"unshare " + n: refused(272, f) for n, f in flags.items()},
                  **{"clone " + n: refused(56, f | 17, 0, 0, 0, 0) for n, f in flags.items()}}))
"""
_CLOCK = """
import ctypes, errno, json, socket, time
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(512)
def refused(*words):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(*words) == -1 else "DONE"
found = {"clock_settime": refused(227, 0, buffer), "settimeofday": refused(164, buffer, 0),
         "clock_adjtime": refused(305, 0, buffer), "sethostname": refused(170, b"x", 1),
         "setdomainname": refused(171, b"x", 1)}
print(json.dumps(found))
"""


async def never_host_root(bench: Bench) -> None:
    """The ids of a sandbox's processes as the host sees them, and what only the global root may write."""
    async with bench.box() as box:
        mine = bench.population()
        for pid in mine:
            uids = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line[:4] == "Uid:")
            hold("0" not in uids.split()[1:], f"process {pid} of a sandbox is uid 0 of the host")
            ranges = [tuple(map(int, line.split())) for line in Path(f"/proc/{pid}/uid_map").read_text().splitlines()]
            hold(all(outside > 0 for _, outside, _ in ranges), f"process {pid} maps uid 0 of the host: {ranges}")
        tried = await shell_in(
            box, "for f in kernel/core_pattern vm/drop_caches; do echo 1 >/proc/sys/$f && echo $f; done"
        )
        hold(tried.stdout == b"", f"a setting of the kernel could be written: {tried.stdout!r}")


async def no_capabilities(bench: Bench) -> None:
    """Every set, and what each of a few rights would allow."""
    fields = await bench.answer(_CAPABILITIES)
    hold(fields.pop("NoNewPrivs") == "1", "no_new_privs is not set")
    for name, value in fields.items():
        hold(int(value, 16) == 0, f"{name} is {value}")
    for name, result in (await bench.answer(_PRIVILEGED)).items():
        hold(result in ("EPERM", "EINVAL", "EACCES"), f"{name} gave {result}")
    copied = "cp /bin/sh /tmp/s && chmod 6755 /tmp/s && /tmp/s -pc 'grep -E ^CapEff /proc/self/status'"
    outcome = await bench.shell(copied)
    hold(outcome.stdout.split()[-1:] == [b"0" * 16], f"a set-user-id program got {outcome.stdout!r}")


async def no_nested_user_namespaces(bench: Bench) -> None:
    """By unshare and by clone; the other kinds as well."""
    for name, result in (await bench.answer(_NAMESPACES)).items():
        hold(result == errno.errorcode[errno.EPERM], f"{name} gave {result}")


async def no_host_clock_or_name(bench: Bench) -> None:
    """Setting the time, adjusting it, and naming the host."""
    for name, result in (await bench.answer(_CLOCK)).items():
        hold(result == errno.errorcode[errno.EPERM], f"{name} gave {result}")


ATTEMPTS = (
    Attempt(claim="never-host-root", run=never_host_root),
    Attempt(claim="no-capabilities", run=no_capabilities),
    Attempt(claim="no-nested-user-namespaces", run=no_nested_user_namespaces),
    Attempt(claim="no-host-clock-or-name", run=no_host_clock_or_name),
)
