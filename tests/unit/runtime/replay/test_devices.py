"""Random files, as a pinned program sees them."""

from __future__ import annotations

import os
import subprocess

import pytest

from hotbed.runtime.replay.devices import AT_FDCWD, recognize
from tests.unit.runtime.replay.supervised import OTHER_SEED, SEED, Supervised


def shell(script: str) -> str:
    """Run a script under the same pin."""
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("path", [b"/dev/urandom", b"/dev/../dev/random", b"//dev//urandom", b"/etc/machine-id"])
def test_a_path_is_recognized_however_it_is_written(path: bytes) -> None:
    """What slips through is not pinned."""
    assert recognize(os.getpid(), AT_FDCWD, path) is not None


@pytest.mark.parametrize("path", [b"/dev/null", b"/work/urandom", b"/etc/passwd", b"urandom", b""])
def test_other_files_are_the_kernel_s(path: bytes) -> None:
    """A program's own file may have any name."""
    assert recognize(os.getpid(), AT_FDCWD, path) is None


def test_a_relative_path_is_seen_from_its_directory() -> None:
    """`cd /dev; head urandom`."""
    directory = os.open("/dev", os.O_RDONLY)

    assert recognize(os.getpid(), directory, b"urandom") == b"/dev/urandom"
    os.close(directory)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "head -c 16 /dev/urandom | od -An -tx1; head -c 16 /dev/random | od -An -tx1",
        "cat /proc/sys/kernel/random/uuid /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id /etc/machine-id",
        "tr -dc a-z </dev/urandom | head -c 12; cat /dev/urandom | tr -dc a-z | head -c 12; od -N4 -tx1 /dev/urandom",
        "dd if=/dev/urandom bs=1M count=3 2>/dev/null | cksum; head -c 300000 /dev/urandom | cksum",
        "cd /dev && head -c 8 urandom | od -An -tx1",
    ],
)
def test_what_is_read_depends_on_the_seed_alone(node: Supervised, script: str) -> None:
    """However much another reader took in advance."""
    same = {node.run(lambda: shell(script))[0] for _ in range(3)}
    other, _ = node.run(lambda: shell(script), OTHER_SEED)

    assert len(same) == 1
    assert other not in same


@pytest.mark.slow
def test_dd_gets_whole_blocks(node: Supervised) -> None:
    """It takes a short read for an end: the file would be smaller than asked for."""
    assert node.run(lambda: shell("dd if=/dev/urandom bs=1M count=2 2>/dev/null | wc -c"))[0].strip() == "2097152"


def test_each_opening_and_each_uuid_is_its_own(node: Supervised) -> None:
    """A script that asks twice for something unique must get two things."""

    def ask() -> list[bytes]:
        paths = ["/dev/urandom", "/dev/urandom", "/proc/sys/kernel/random/uuid", "/proc/sys/kernel/random/uuid"]
        return [open(path, "rb", 0).read(16) for path in paths]

    drawn, _ = node.run(lambda: len(set(ask())), SEED)

    assert drawn == "4"
