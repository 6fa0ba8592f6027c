"""A process stopped by ptrace(2), and system calls made in its place.

The process is seized, never attached, so it gets no signal that it could notice; it is killed if we end while we hold
it (PTRACE_O_EXITKILL). It must be idle: blocked in read(2) on its lane. A system call is made in its place by pointing
it at the `syscall` instruction that it is blocked in, with registers of ours; at the entry we check that the kernel is
about to do what we asked, and nothing else. What is restored at the end makes it enter its read again.

The kernel ties a tracee to the tracing thread, so all of this belongs to one thread.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable

from hotbed.guest import kernel
from hotbed.runtime.linux.memory import Memory

_SEIZE, _INTERRUPT, _DETACH, _SYSCALL, _CONT = 0x4206, 0x4207, 17, 24, 7
_GETREGS, _SETREGS, _GETREGSET, _SETREGSET = 12, 13, 0x4204, 0x4205
_GETSIGMASK, _SETSIGMASK = 0x420A, 0x420B
_OPTIONS = 0x100000 | 1  # EXITKILL, TRACESYSGOOD
_XSTATE = 0x202  # NT_X86_XSTATE: vector registers, rounding mode
_XSTATE_ROOM = 1 << 14
_ALL_CHILDREN = 0x40000000  # __WALL
_EVENT_STOP = 128
_SYSCALL_STOP = 5 | 0x80
_EVERYTHING = b"\xff" * 8
_MASK = (1 << 64) - 1
_ERRNO_FLOOR = _MASK - 4095

NR = {
    "read": 0, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "lseek": 8, "dup3": 292,
    "madvise": 28, "getitimer": 36, "fcntl": 72, "chdir": 80, "umask": 95, "times": 100, "sigaltstack": 131,
    "prctl": 157, "openat": 257, "close": 3, "prlimit64": 302, "setpriority": 141,
}  # fmt: skip
_NAMES = (  # struct user_regs_struct
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
R = {name: index for index, name in enumerate(_NAMES)}
_ARGUMENTS = tuple(R[name] for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9"))
_RED_ZONE = 128
SCRATCH = 512
SYSCALL_CODE = b"\x0f\x05"


class Busy(Exception):
    """It is not idle: it computes, waits for something else, or is stopped."""


class Lost(Exception):
    """It ended, or did not do what it was made to do; it has been killed."""


class Tracee:
    """One stopped thread. Use `release` or `kill`; a `with` block kills what neither was called for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._memory = Memory()
        self._held = False
        try:
            kernel.call(101, _SEIZE, pid, 0, _OPTIONS)
            self._held = True
            kernel.call(101, _INTERRUPT, pid, 0, 0)
        except ProcessLookupError:
            raise Lost(f"process {pid} has ended") from None
        if self._wait() >> 8 != _EVENT_STOP:
            self.detach()
            raise Busy("a signal was on its way to it")
        self.registers = self._get_registers()

    def __enter__(self) -> Tracee:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._held:
            self.kill()

    # --- stopping and letting go ---

    def is_idle(self, fd: int) -> bool:
        """Whether it is blocked in read(2) on this descriptor."""
        found = self.registers
        blocked = found[R["rax"]] >= _ERRNO_FLOOR
        return blocked and found[R["orig_rax"]] == NR["read"] and found[R["rdi"]] & 0xFFFFFFFF == fd

    def detach(self) -> None:
        """Let it run on, as if it had not been stopped. Nothing may have been changed."""
        self._held = False
        kernel.call(101, _DETACH, self.pid, 0, 0)

    def begin(self) -> None:
        """Get ready for system calls in its place: no signal may come between."""
        self._base = list(self.registers)
        self.mask = self.get_mask()
        self.set_mask(_EVERYTHING)
        if self.peek(self._base[R["rip"]] - 2, 2) != SYSCALL_CODE:
            raise Busy("it is blocked elsewhere than at a system call")

    def release(self, registers: list[int] | None = None, mask: bytes | None = None) -> None:
        """Make it enter the read that it (or whoever these registers are of) was blocked in, and let go."""
        final = list(registers or self.registers)
        final[R["rip"]] -= 2
        final[R["rax"]] = final[R["orig_rax"]]
        final[R["orig_rax"]] = _MASK
        self._set_registers(final)
        self.set_mask(mask or self.mask)
        self.detach()

    def kill(self) -> None:
        """SIGKILL, and forget it."""
        self._held = False
        try:
            os.kill(self.pid, 9)  # held or not yet reaped: the number is still its own
            while True:
                _, status = os.waitpid(self.pid, _ALL_CHILDREN)
                if not os.WIFSTOPPED(status):
                    return
        except (ProcessLookupError, ChildProcessError):
            return

    # --- registers ---

    def _get_registers(self) -> list[int]:
        room = ctypes.create_string_buffer(27 * 8)
        kernel.call(101, _GETREGS, self.pid, 0, ctypes.addressof(room))
        return list(struct.unpack("27Q", room.raw))

    def _set_registers(self, values: list[int]) -> None:
        room = ctypes.create_string_buffer(struct.pack("27Q", *(value & _MASK for value in values)), 27 * 8)
        kernel.call(101, _SETREGS, self.pid, 0, ctypes.addressof(room))

    def get_mask(self) -> bytes:
        """The signals it blocks."""
        room = ctypes.create_string_buffer(8)
        kernel.call(101, _GETSIGMASK, self.pid, 8, ctypes.addressof(room))
        return room.raw

    def set_mask(self, mask: bytes) -> None:
        """Block these signals."""
        room = ctypes.create_string_buffer(mask, 8)
        kernel.call(101, _SETSIGMASK, self.pid, 8, ctypes.addressof(room))

    def get_vectors(self) -> bytes:
        """The floating point and vector state."""
        room = ctypes.create_string_buffer(_XSTATE_ROOM)
        iovec = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(room), _XSTATE_ROOM), 16)
        kernel.call(101, _GETREGSET, self.pid, _XSTATE, ctypes.addressof(iovec))
        return room.raw[: struct.unpack("QQ", iovec.raw)[1]]

    def set_vectors(self, state: bytes) -> None:
        """Set the floating point and vector state."""
        room = ctypes.create_string_buffer(state, len(state))
        iovec = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(room), len(state)), 16)
        kernel.call(101, _SETREGSET, self.pid, _XSTATE, ctypes.addressof(iovec))

    # --- system calls in its place ---

    def call(self, name: str, *arguments: int) -> int:
        """Make it do one system call. Raises `OSError` with the call's own errno."""
        result = self._call(NR[name], arguments)
        if result >= _ERRNO_FLOOR:
            code = (1 << 64) - result
            raise OSError(code, f"{name} in process {self.pid}: {os.strerror(code)}")
        return result

    def _call(self, number: int, arguments: tuple[int, ...]) -> int:
        wanted = list(self._base)
        wanted[R["rip"]] -= 2
        wanted[R["rax"]], wanted[R["orig_rax"]] = number, _MASK
        for place, value in zip(_ARGUMENTS, (*arguments, *(0,) * (6 - len(arguments))), strict=True):
            wanted[place] = value & _MASK
        self._set_registers(wanted)
        self._run_to_syscall_stop()
        entry = self._get_registers()
        if entry[R["orig_rax"]] != number or any(entry[place] != wanted[place] for place in _ARGUMENTS):
            self.kill()
            raise Lost("it entered another system call than the one it was made to")
        self._run_to_syscall_stop()
        return self._get_registers()[R["rax"]]

    def _run_to_syscall_stop(self) -> None:
        kernel.call(101, _SYSCALL, self.pid, 0, 0)
        if self._wait() != _SYSCALL_STOP:
            self.kill()
            raise Lost("it stopped elsewhere than at a system call")

    def _wait(self) -> int:
        _, status = os.waitpid(self.pid, _ALL_CHILDREN)  # our owner's alarm ends a wait that takes too long
        if not os.WIFSTOPPED(status):
            self._held = False
            raise Lost("it has ended")
        return status >> 8

    # --- its memory ---

    @property
    def scratch(self) -> int:
        """`SCRATCH` bytes of its stack that no function owns."""
        return (self.registers[R["rsp"]] - _RED_ZONE - SCRATCH) & ~63

    def with_scratch(self, data: bytes, use: Callable[[int], None], *, size: int) -> bytes:
        """Lend it `data` below its stack for the time of `use`; what is there afterwards. What was there comes back."""
        address = self.scratch
        before = self.peek(address, max(size, len(data)))
        self.poke(address, data)
        use(address)
        after = self.peek(address, size)
        self.poke(address, before)
        return after

    def peek(self, address: int, size: int) -> bytes:
        """Its bytes."""
        return self._memory.read(self.pid, address, size)

    def poke(self, address: int, data: bytes) -> None:
        """Change its bytes."""
        self._memory.write(self.pid, address, data)


def stop_idle(pid: int, fd: int, *, patience_s: float) -> Tracee:
    """Stop a process that is, or soon will be, blocked in its read. Raises `Busy`, `Lost`."""
    deadline = time.monotonic() + patience_s
    while True:
        reason = "it is not waiting for a request"
        try:
            tracee = Tracee(pid)
            if tracee.is_idle(fd):
                return tracee
            tracee.detach()
        except Busy as busy:
            reason = str(busy)
        if time.monotonic() > deadline:
            raise Busy(reason)
        time.sleep(0.0005)
