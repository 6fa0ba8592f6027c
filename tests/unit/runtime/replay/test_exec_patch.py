"""Finding and replacing what an exec brought."""

from __future__ import annotations

import os
import subprocess

import pytest

from hotbed.runtime.replay.exec_patch import ExecPatch, own_vdso, vdso_symbols
from tests.unit.runtime.replay.supervised import OTHER_SEED, SEED, Supervised

_SHOW_AT_RANDOM = """
import ctypes
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_void_p
libc.getauxval.argtypes = [ctypes.c_ulong]
print(ctypes.string_at(libc.getauxval(25), 16).hex())
"""


def test_the_clock_is_found_in_this_kernel_s_vdso() -> None:
    """What is not found would be read around us."""
    symbols = vdso_symbols(own_vdso())

    assert {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"} <= set(symbols)


def test_a_kernel_without_a_vdso_needs_no_patch() -> None:
    """vdso=0 on the kernel's command line."""
    ExecPatch(b"").pin(os.getpid(), "full")


@pytest.mark.slow
def test_at_random_comes_from_the_seed() -> None:
    """Stack canaries, pointer guards and hash seeds are made of it."""
    with_seeds = []
    for seed in (SEED, SEED, OTHER_SEED):
        node = Supervised()
        shown, _ = node.run(
            lambda: subprocess.check_output(["/usr/bin/python3", "-ISc", _SHOW_AT_RANDOM], text=True), seed
        )
        node.close()
        with_seeds.append(shown)

    assert with_seeds[0] == with_seeds[1] != with_seeds[2]
    assert len(with_seeds[0].strip()) == 32
