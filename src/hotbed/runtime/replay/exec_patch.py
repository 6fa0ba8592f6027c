"""What a program was given at its exec and is pinned before its first own instruction reads it.

Every C library, and Go, calls arch_prctl(ARCH_SET_FS) once per exec, before it looks at the 16 random bytes that the
kernel left for it (AT_RANDOM: stack canary, pointer guard, hash seeds). The call is stopped there, the bytes are
written anew, and functions of the vDSO, which answer without any system call, are overwritten: `getrandom` says
ENOSYS, so that the caller asks the kernel; at level `full` the clock's functions make the system calls that they were
there to avoid. The vDSO is mapped privately: what is written is the process's own, and its forks'.
"""

from __future__ import annotations

import ctypes
import struct

from hotbed.runtime.linux import memory

_RETURN_ENOSYS = b"\x48\xc7\xc0\xda\xff\xff\xff\xc3"  # mov rax, -38; ret
_CLOCKS = {"__vdso_clock_gettime": 228, "__vdso_gettimeofday": 96, "__vdso_time": 201}
_PT_DYNAMIC, _DT_STRTAB, _DT_SYMTAB = 2, 5, 6
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def _system_call(number: int) -> bytes:
    """Again when a signal came between: mov eax, number; syscall; cmp eax, -EINTR; je to the beginning; ret."""
    return b"\xb8" + struct.pack("<I", number) + b"\x0f\x05\x83\xf8\xfc\x74\xf4\xc3"


def vdso_symbols(image: bytes) -> dict[str, int]:
    """Offsets of the functions in a vDSO image (a small ELF file whose file offsets are its addresses)."""
    offset, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    headers = (_PROGRAM_HEADER.unpack_from(image, offset + index * size) for index in range(count))
    start, length = next((header[2], header[5]) for header in headers if header[0] == _PT_DYNAMIC)
    tags: dict[int, int] = {}
    for tag, value in struct.iter_unpack("<QQ", image[start : start + length - length % 16]):
        tags.setdefault(tag, value)
    symbols, names = tags[_DT_SYMTAB], tags[_DT_STRTAB]
    found = {}
    for at in range(symbols, names - _SYMBOL.size + 1, _SYMBOL.size):  # the names follow the symbols
        name, _, _, section, value, _ = _SYMBOL.unpack_from(image, at)
        if section:
            found[image[names + name : image.index(b"\0", names + name)].decode()] = value
    return found


def own_vdso() -> bytes:
    """This process's vDSO image: the same for every 64-bit process of one boot."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith("[vdso]"):
                start, end = (int(word, 16) for word in line.split()[0].split("-"))
                return ctypes.string_at(start, end - start)
    return b""


class ExecPatch:
    """Pins what an exec brought."""

    def __init__(self, image: bytes) -> None:
        symbols = vdso_symbols(image) if image else {}
        random = [(at, _RETURN_ENOSYS) for name, at in symbols.items() if name == "__vdso_getrandom"]
        clocks = [(at, _system_call(_CLOCKS[name])) for name, at in symbols.items() if name in _CLOCKS]
        self._patches = {"rng": random, "full": random + clocks}

    def pin(self, tid: int, level: str, random_bytes: bytes | None = None) -> None:
        """Patch the program that `tid` runs; without `random_bytes` its AT_RANDOM stays (a fork, not an exec)."""
        patches = self._patches[level]
        if not patches and random_bytes is None:
            return
        auxiliary = memory.auxiliary(tid)
        base = auxiliary.get(memory.AT_SYSINFO_EHDR)
        pieces = [(base + at, code) for at, code in patches] if base else []
        if random_bytes is not None and memory.AT_RANDOM in auxiliary:
            pieces.append((auxiliary[memory.AT_RANDOM], random_bytes))
        memory.force(tid, pieces)
