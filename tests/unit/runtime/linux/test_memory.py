"""Another process's memory, by address."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from hotbed.guest import kernel
from hotbed.runtime.linux import memory
from hotbed.runtime.linux.memory import Memory

ME = os.getpid()
NR_MPROTECT = 10


def test_what_is_written_can_be_read() -> None:
    """Across the window's size too."""
    buffer = ctypes.create_string_buffer(200_000)
    data = os.urandom(200_000)
    Memory().write(ME, ctypes.addressof(buffer), data)

    assert buffer.raw == data
    assert Memory().read(ME, ctypes.addressof(buffer), 100) == data[:100]


def test_text_ends_at_its_nul_and_before_a_page_that_is_not_there() -> None:
    """A path may be the last thing before a hole."""
    area = mmap.mmap(-1, 8192)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    area[4090:4096] = b"/path\0"
    assert Memory().read_text(ME, address + 4090, 256) == b"/path"

    area[4090:4100] = b"/long/path"
    assert Memory().read_text(ME, address + 4090, 8) == b"/long/pa"


def test_a_peek_sees_the_same_or_nothing() -> None:
    """Nothing of what an earlier one saw, and no text that goes on behind the page or the limit."""
    area = mmap.mmap(-1, 8192)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    area[4090:4096] = b"/path\0"
    looking = Memory()

    assert bytes(looking.peek(ME, address + 4090, 256) or b"") == b"/path"
    assert looking.peek(ME, 16, 256) is None
    assert looking.peek(ME, address + 4090, 3) is None
    area[4090:4100] = b"/long/path"
    assert looking.peek(ME, address + 4090, 256) is None


def test_a_bad_address_is_an_error() -> None:
    """Not less than was asked for."""
    with pytest.raises(OSError, match="Bad address"):
        Memory().read(ME, 16, 4)
    with pytest.raises(OSError, match="Bad address"):
        Memory().write(ME, 16, b"x")


def test_read_only_memory_can_be_forced() -> None:
    """The vDSO is not writable, even for its own process."""
    area = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    kernel.call(NR_MPROTECT, address, 4096, mmap.PROT_READ)
    with pytest.raises(OSError, match="Bad address"):
        Memory().write(ME, address, b"x")
    memory.force(ME, [(address, b"forced")])

    assert area[:6] == b"forced"


def test_the_auxiliary_vector_names_the_random_bytes() -> None:
    """And the vDSO, where there is one."""
    assert memory.auxiliary(ME)[memory.AT_RANDOM] > 0
