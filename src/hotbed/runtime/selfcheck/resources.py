"""Attempts to use more than the limits allow."""

from __future__ import annotations

import resource
import time

from hotbed.errors import InvalidRequest
from hotbed.runtime.base import ExecRequest
from hotbed.runtime.selfcheck.bench import Attempt, Bench, hold, shell_in

_MIB = 1 << 20
_FORKS = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(100)
        count += 1
except OSError as error:
    print(count, error.errno)
    os._exit(0)
"""
_MEMORY = "x = []\nwhile True:\n    x.append(bytearray(1 << 20))"
_DISK = """
import errno, json, os
size = files = 0
try:
    with open("/tmp/full", "wb", 0) as file:
        while True:
            size += file.write(bytes(1 << 20))
except OSError as error:
    full = error.errno
os.unlink("/tmp/full")
try:
    while True:
        os.close(os.open("/tmp/%d" % files, os.O_CREAT | os.O_WRONLY))
        files += 1
except OSError as error:
    names = {"full": errno.errorcode[full], "many": errno.errorcode[error.errno]}
    print(json.dumps({"size": size, "files": files, **names}))
"""
_DESCRIPTORS = """
import errno, os
count = 0
try:
    while True:
        os.dup(0)
        count += 1
except OSError as error:
    print(count, errno.errorcode[error.errno])
"""


async def fork_bomb_contained(bench: Bench) -> None:
    """Forking as far as it goes, then the classic bomb with a deadline, then what is left."""
    counted = await bench.code(_FORKS, pids=32)
    hold(counted.stdout.split()[1:] == [b"11"], f"forking ended with {counted.stdout!r} {counted.status}")
    hold(int(counted.stdout.split()[0]) < 32, f"{counted.stdout!r} processes at a limit of 32")
    named = await bench.code(_FORKS.replace("os._exit(0)", "raise"), pids=32)
    hold(named.status == "pids", f"a program without room for a process ended as {named.status}")
    async with bench.box(pids=32) as box:
        began = time.monotonic()
        bomb = await shell_in(box, "bomb() { bomb & bomb; }; bomb", timeout_s=1.5)
        took = time.monotonic() - began
        hold(took < 6.0, f"the bomb took {took:.1f} s to end ({bomb.status})")
        mine = bench.population()
    await bench.wait_extinct(mine - bench.population())


async def memory_bomb_contained(bench: Bench) -> None:
    """Allocating without end, and filling the disk, which is memory too but smaller."""
    outcome = await bench.code(_MEMORY, memory_mib=128, disk_mib=32, timeout_s=30.0)
    by_cgroup = outcome.status == "oom"
    hold(
        by_cgroup or b"MemoryError" in outcome.stderr, f"{outcome.status} {outcome.exit_code} {outcome.stderr[-200:]!r}"
    )
    filled = await bench.shell("head -c 100M /dev/zero >/tmp/full; echo $?", memory_mib=128, disk_mib=32)
    hold(filled.status != "oom" and b"No space" in filled.stderr, f"{filled.status} {filled.stderr[-200:]!r}")


async def disk_fill_contained(bench: Bench) -> None:
    """In bytes and in files."""
    found = await bench.answer(_DISK, disk_mib=16, files=500)
    hold(found["full"] == found["many"] == "ENOSPC", f"writing ended with {found}")
    hold(found["size"] <= 16 * _MIB and found["files"] < 500, f"{found} at limits of 16 MiB and 500 files")


async def descriptor_bomb_contained(bench: Bench) -> None:
    """Opening without end."""
    outcome = await bench.code(_DESCRIPTORS, open_files=128)
    count, why = outcome.stdout.split()
    hold(int(count) <= 128 and why == b"EMFILE", f"{outcome.stdout!r} at a limit of 128")


async def output_flood_contained(bench: Bench) -> None:
    """A few hundred megabytes, of which little is kept."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = 200_000_000
    async with bench.box() as box:
        command = f"head -c {flood} /dev/zero".encode()
        request = ExecRequest(kind="command", program=command, timeout_s=60.0, output_bytes=_MIB)
        outcome = await box.exec(request)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    hold(outcome.stdout_total == flood and outcome.truncated, f"{outcome.stdout_total} bytes counted")
    hold(len(outcome.stdout) <= _MIB, f"{len(outcome.stdout)} bytes kept")
    hold(grown_kib < 64 << 10, f"the node grew by {grown_kib >> 10} MiB")


async def cpu_hog_contained(bench: Bench) -> None:
    """One busy loop to its deadline, and four against a share of one CPU."""
    began = time.monotonic()
    outcome = await bench.code("while True: pass", timeout_s=1.0)
    hold(outcome.status == "timeout" and time.monotonic() - began < 4.0, f"{outcome.status}")
    if bench.backend.capabilities()["limits"]["cpu"] != "cgroup":
        return
    busy = "for i in 1 2 3 4; do (while :; do :; done) & done; sleep 1; "
    ticks = await bench.shell(busy + "cat /proc/[0-9]*/stat | awk '{s+=$14+$15} END {print s}'", cpus=0.5)
    hold(int(ticks.stdout or 0) < 85, f"four busy loops got {ticks.stdout!r} ticks of 100 at half a CPU")


async def huge_arguments_refused(bench: Bench) -> None:
    """One argument over the kernel's limit, and too many of those under it; those that fit, fit."""
    for argv in (("echo", "x" * 200_000), ("/bin/echo", *["x" * 100_000] * 40)):
        try:
            ExecRequest(kind="commands", argv=(argv,))
        except InvalidRequest as error:
            hold(error.hint, "the error does not say what to do")
        else:
            hold(False, f"{len(argv)} arguments of {len(argv[-1])} bytes were taken")
    async with bench.box() as box:
        outcome = await box.exec(ExecRequest(kind="commands", argv=(("/bin/echo", *["x" * 100_000] * 20),)))
        hold(outcome.status == "ok", f"{outcome.status} {outcome.stderr[-200:]!r}")


ATTEMPTS = (
    Attempt(claim="fork-bomb-contained", run=fork_bomb_contained),
    Attempt(claim="memory-bomb-contained", run=memory_bomb_contained),
    Attempt(claim="disk-fill-contained", run=disk_fill_contained),
    Attempt(claim="descriptor-bomb-contained", run=descriptor_bomb_contained),
    Attempt(claim="output-flood-contained", run=output_flood_contained),
    Attempt(claim="cpu-hog-contained", run=cpu_hog_contained),
    Attempt(claim="huge-arguments-refused", run=huge_arguments_refused),
)
