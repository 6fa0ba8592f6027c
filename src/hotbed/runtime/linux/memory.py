"""Another process's memory: small reads and writes by address, and writes to pages that are read-only there.

Needs what ptrace needs: the same user, or a capability over the process's user namespace, which its owner has from the
parent namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable

NR_PROCESS_VM_READV = 310
NR_PROCESS_VM_WRITEV = 311
AT_RANDOM = 25
AT_SYSINFO_EHDR = 33  # where the vDSO begins

_WINDOW = 1 << 16
_PAGE = 4096
_libc = ctypes.PyDLL(None, use_errno=True)  # a few bytes are moved: not worth letting go of the GIL
_read, _write = _libc.process_vm_readv, _libc.process_vm_writev
_read.restype = _write.restype = ctypes.c_ssize_t
_ENTRY = struct.Struct("QQ")


class Memory:
    """Reads and writes other processes' memory through one buffer of this process."""

    def __init__(self) -> None:
        self._window = bytearray(_WINDOW)
        self._here = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.c_char.from_buffer(self._window)))  # struct iovec
        self._there = (ctypes.c_uint64 * 2)()
        self._vectors = ctypes.byref(self._here), ctypes.byref(self._there)

    def read(self, tid: int, address: int, size: int) -> bytes:
        """Exactly `size` bytes. Raises `OSError` (EFAULT, or ESRCH when the process is gone)."""
        got = self._transfer(_read, tid, address, size)
        if got < size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return bytes(self._window[:size])

    def read_text(self, tid: int, address: int, limit: int) -> bytes:
        """The bytes before the first NUL, or the first `limit` of them. Never reads a page that it need not."""
        text = b""
        while len(text) < limit:
            size = min(limit - len(text), _PAGE - address % _PAGE)
            if self._transfer(_read, tid, address, size) < size:
                raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
            end = self._window.find(0, 0, size)
            if end >= 0:
                return text + self._window[:end]
            text += self._window[:size]
            address += size
        return text

    def peek(self, tid: int, address: int, limit: int) -> bytearray | None:
        """The same at once, if the NUL lies within `limit` and on the address's own page; None if not, or if gone."""
        size = _PAGE - address % _PAGE
        self._here[1] = self._there[1] = size if size < limit else limit
        self._there[0] = address
        end = self._window.find(0, 0, max(0, _read(tid, self._vectors[0], 1, self._vectors[1], 1, 0)))
        return self._window[:end] if end >= 0 else None

    def write(self, tid: int, address: int, data: bytes) -> None:
        """Write all of `data` to writable memory. Raises `OSError` (EFAULT, ESRCH)."""
        for start in range(0, len(data), _WINDOW):
            chunk = data[start : start + _WINDOW]
            self._window[: len(chunk)] = chunk
            if self._transfer(_write, tid, address + start, len(chunk)) < len(chunk):
                raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))

    def _transfer(self, move: Callable[..., int], tid: int, address: int, size: int) -> int:
        here, there = self._here, self._there
        here[1] = there[1] = size
        there[0] = address
        moved = move(tid, self._vectors[0], 1, self._vectors[1], 1, 0)
        if moved < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return moved


def force(tid: int, pieces: Iterable[tuple[int, bytes]]) -> None:
    """Write (address, bytes) pieces even where the process itself may not write (FOLL_FORCE, man 5 proc_pid_mem)."""
    fd = os.open(f"/proc/{tid}/mem", os.O_WRONLY | os.O_CLOEXEC)
    try:
        for address, data in pieces:
            os.pwrite(fd, data, address)
    finally:
        os.close(fd)


def auxiliary(tid: int) -> dict[int, int]:
    """The auxiliary vector that the kernel gave to the program."""
    fd = os.open(f"/proc/{tid}/auxv", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, 4096)
    finally:
        os.close(fd)
    return dict(_ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]))
