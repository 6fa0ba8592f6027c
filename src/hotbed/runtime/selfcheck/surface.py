"""Attempts on the surface that the kernel shows."""

from __future__ import annotations

import json

from hotbed.guest.template import filters
from hotbed.runtime.base import ExecRequest
from hotbed.runtime.selfcheck.bench import Attempt, Bench, hold

_CALLS = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
numbers = %s
print(json.dumps({n: errno.errorcode[ctypes.get_errno()] if libc.syscall(k, 0, 0, 0, 0, 0, 0) == -1 else "DONE"
                  for n, k in numbers.items()}))
"""
_FOREIGN = """
import ctypes, errno, json, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
x32 = errno.errorcode[ctypes.get_errno()] if libc.syscall(0x40000000 | 39) == -1 else "DONE"
pid = os.fork()
if pid == 0:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    os._exit(0)
print(json.dumps({"x32": x32, "i386": os.waitpid(pid, 0)[1]}))
"""
_FAMILIES = """
import errno, json, socket
found = {}
for family in range(1, 48):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
            found[str(family)] = "DONE"
        except OSError as error:
            found.setdefault(str(family), errno.errorcode[error.errno])
print(json.dumps(found))
"""
_TERMINAL = """
import errno, fcntl, json, os, pty
found = {}
try:
    os.open("/dev/tty", os.O_RDWR)
    found["tty"] = "DONE"
except OSError as error:
    found["tty"] = errno.errorcode[error.errno]
master, slave = pty.openpty()
for name, request in (("TIOCSTI", 0x5412), ("TIOCSTI high", 0x100005412), ("TIOCLINUX", 0x541C)):
    try:
        fcntl.ioctl(slave, request & 0xFFFFFFFF, b"x")
        found[name] = "DONE"
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
print(json.dumps(found))
"""
_ON_TERMINAL = """
import errno, fcntl, json, os
try:
    fcntl.ioctl(0, 0x5412, b"x")
    pushed = "DONE"
except OSError as error:
    pushed = errno.errorcode[error.errno]
print(json.dumps({"terminals": sorted(os.listdir("/dev/pts")), "mine": os.ttyname(0), "pushed": pushed}))
"""
_SETTINGS = """
import json, os
written = []
for top, folders, files in os.walk("/proc/sys"):
    for name in files:
        path = os.path.join(top, name)
        try:
            os.close(os.open(path, os.O_WRONLY))
            written.append(path)
        except OSError:
            pass
for path in ("/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/timer_list"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        written.append(path)
    except OSError:
        pass
print(json.dumps(written))
"""
_DEVICES = """
import ctypes, json, os, stat
libc = ctypes.CDLL(None, use_errno=True)
devices = [name for name in os.listdir("/dev") if stat.S_ISCHR(os.lstat("/dev/" + name).st_mode)
           or stat.S_ISBLK(os.lstat("/dev/" + name).st_mode)]
opened = []
for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/proc/kpagecount", "/proc/vmallocinfo"):
    try:
        os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 1)
        opened.append(path)
    except OSError:
        pass
log = libc.syscall(103, 3, ctypes.create_string_buffer(100), 100)
print(json.dumps({"devices": sorted(devices), "opened": opened, "log": log}))
"""
_SIGSYS = 31


async def dangerous_system_calls_refused(bench: Bench) -> None:
    """Each call of the list, with arguments that mean nothing: the filter must answer before the kernel looks."""
    numbers = {**filters.REFUSED, **filters.USED_BY_ISOLATION}
    for name, result in (await bench.answer(_CALLS % json.dumps(numbers))).items():
        hold(result == "EPERM", f"{name} gave {result}")


async def clone3_refused(bench: Bench) -> None:
    """Its flags are in memory, where no filter looks."""
    result = (await bench.answer(_CALLS % json.dumps({"clone3": filters.NR_CLONE3})))["clone3"]
    hold(result == "ENOSYS", f"clone3 gave {result}")


async def foreign_system_calls_refused(bench: Bench) -> None:
    """The x32 table through its bit, the 32-bit table through its interrupt."""
    found = await bench.answer(_FOREIGN)
    hold(found["x32"] == "ENOSYS", f"x32 gave {found['x32']}")
    hold(found["i386"] & 0x7F in (_SIGSYS, 11), f"a 32-bit call returned: {found['i386']}")


async def socket_families_limited(bench: Bench) -> None:
    """Every family there is, in every type."""
    found = await bench.answer(_FAMILIES)
    open_ones = sorted(int(family) for family, result in found.items() if result == "DONE")
    hold(set(open_ones) <= {1, 2, 10, 16}, f"socket families {open_ones} can be opened")


async def no_terminal_injection(bench: Bench) -> None:
    """On the controlling terminal, which is not there, and on one of the sandbox's own."""
    found = await bench.answer(_TERMINAL)
    hold(found.pop("tty") in ("ENXIO", "ENOENT"), "there is a controlling terminal")
    for name, result in found.items():
        hold(result == "EPERM", f"{name} gave {result}")


async def terminals_are_its_own(bench: Bench) -> None:
    """From an exec on a terminal: what else there is in devpts, input pushed into it, and its end."""
    async with bench.box() as box:
        request = ExecRequest(
            kind="commands", argv=(("python3", "-c", _ON_TERMINAL),), terminal=(24, 80), timeout_s=20.0
        )
        outcome = await box.exec(request)
        hold(outcome.status == "ok", f"the attempt itself failed: {outcome.status} {outcome.stdout[-2000:]!r}")
        found = json.loads(outcome.stdout)
        left = await box.exec(ExecRequest(kind="command", program=b"ls /dev/pts", timeout_s=20.0))
    hold(found["terminals"] == ["0", "ptmx"], f"terminals: {found['terminals']}")
    hold(found["mine"] == "/dev/pts/0", f"its terminal is {found['mine']}")
    hold(found["pushed"] == "EPERM", f"pushing input into it gave {found['pushed']}")
    hold(left.stdout == b"ptmx\n", f"left after its end: {left.stdout!r}")


async def kernel_settings_read_only(bench: Bench) -> None:
    """Every file below /proc/sys, opened for writing."""
    written = await bench.answer(_SETTINGS)
    hold(written == [], f"could be opened for writing: {written[:5]}")


async def no_kernel_memory_or_log(bench: Bench) -> None:
    """Devices by listing, the rest by opening."""
    found = await bench.answer(_DEVICES)
    hold(found["devices"] == ["full", "null", "random", "tty", "urandom", "zero"], f"devices: {found['devices']}")
    hold(found["opened"] == [], f"could be read: {found['opened']}")
    hold(found["log"] == -1, "the kernel's log can be read")


ATTEMPTS = (
    Attempt(claim="dangerous-system-calls-refused", run=dangerous_system_calls_refused),
    Attempt(claim="clone3-refused", run=clone3_refused),
    Attempt(claim="foreign-system-calls-refused", run=foreign_system_calls_refused),
    Attempt(claim="socket-families-limited", run=socket_families_limited),
    Attempt(claim="no-terminal-injection", run=no_terminal_injection),
    Attempt(claim="terminals-are-its-own", run=terminals_are_its_own),
    Attempt(claim="kernel-settings-read-only", run=kernel_settings_read_only),
    Attempt(claim="no-kernel-memory-or-log", run=no_kernel_memory_or_log),
)
