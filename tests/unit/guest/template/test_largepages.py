"""Large pages under what forks share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.guest.template import largepages
from hotbed.guest.template.largepages import LARGE, PAGE, Span

MAPS = """\
555555559000-555555a75000 rw-p 00000000 00:00 0                          [heap]
7ffff6f7c000-7ffff72af000 rw-p 00000000 00:00 0
7ffff72af000-7ffff72b0000 ---p 00000000 00:00 0
7ffff7800000-7ffff78f5000 r--p 00000000 fe:00 26933                      /opt/python/lib/libpython3.11.so.1.0
7ffff78f5000-7ffff7b31000 r-xp 000f5000 fe:00 26933                      /opt/python/lib/libpython3.11.so.1.0
7ffff7b31000-7ffff7c44000 r--p 00331000 fe:00 26933                      /opt/python/lib/libpython3.11.so.1.0
7ffff7c44000-7ffff7d78000 rw-p 00443000 fe:00 26933                      /opt/python/lib/libpython3.11.so.1.0
7ffff7d78000-7ffff7d80000 r--s 00000000 fe:00 340000                     /usr/lib/some cache
7ffff7d80000-7ffff7d90000 r--p 00000000 fe:00 329635                     /usr/lib/locale/C.utf8/LC_CTYPE
7ffff7fc8000-7ffff7fca000 r-xp 00000000 00:00 0                          [vdso]
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
"""

# Runs in a process of its own, whose memory it changes: what was there before and after, and how many were laid.
LAYING = """
import ctypes, json, re, sys
filler = [bytes(600) for _ in range(20_000)]  # heap enough for a large page
from hotbed.guest.template import largepages
with open("/proc/self/maps") as maps:
    places = [at for span in largepages.spans(maps) if span.executable for at in largepages._whole(span)]
before = [hash(ctypes.string_at(at, largepages.LARGE)) for at in places]
laid = largepages.lay()
after = [hash(ctypes.string_at(at, largepages.LARGE)) for at in places]
sizes = [line.split() for line in open("/proc/self/smaps") if line.startswith("AnonHugePages")]
assert sum(map(len, filler)) == 12_000_000 and json.loads("[1]") == [1] and re.match("a+", "aaa")
print(json.dumps({"places": len(places), "same": before == after, "laid": laid, "kib": sum(int(s[1]) for s in sizes)}))
"""


def test_what_could_hold_one_is_heap_and_libraries_where_nobody_writes() -> None:
    python = Span(0x7FFFF7800000, 0x7FFFF7C44000, "/opt/python/lib/libpython3.11.so.1.0", True)

    assert list(largepages.spans(MAPS.splitlines(keepends=True))) == [
        Span(0x555555559000, 0x555555A75000, "", False),
        Span(0x7FFFF6F7C000, 0x7FFFF72AF000, "", False),
        python,
        Span(0x7FFFF7D80000, 0x7FFFF7D90000, "/usr/lib/locale/C.utf8/LC_CTYPE", False),
    ]
    assert largepages._whole(python) == [0x7FFFF7800000, 0x7FFFF7A00000]


@pytest.mark.parametrize(
    ("start", "end", "fit"),
    [(1, LARGE, 0), (PAGE, 2 * LARGE, 1), (0, LARGE, 1), (0, 2 * LARGE - PAGE, 1), (LARGE - PAGE, 3 * LARGE + PAGE, 2)],
)
def test_a_large_page_lies_in_a_span_entirely(start: int, end: int, fit: int) -> None:
    assert len(largepages._whole(Span(start, end, "", False))) == fit


def test_what_is_laid_is_large_and_holds_what_was_there() -> None:
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release < (6, 1):
        pytest.skip("this kernel puts no large pages together")

    told = _in_a_process(LAYING)

    assert told["same"]
    assert told["laid"] > told["places"] // 2
    assert told["kib"] >= 2048 * told["laid"]


@pytest.mark.parametrize("refused", ["_COLLAPSE = 9999", "_PAGEMAP = '/proc/self/no_pagemap'"])
def test_a_kernel_that_refuses_leaves_everything_as_it_was(refused: str) -> None:
    refusing = LAYING.replace("laid =", f"largepages.{refused}; laid =")

    told = _in_a_process(refusing)

    assert (told["same"], told["laid"]) == (True, 0)


def _in_a_process(code: str) -> dict[str, int]:
    source = str(Path(largepages.__file__).parents[3])
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"]
    return dict(json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60).stdout))
