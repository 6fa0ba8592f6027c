"""What is taken of a stopped process."""

from __future__ import annotations

import os

import pytest

from hotbed.runtime.livefork import capture
from hotbed.runtime.livefork.capture import Capture, Unsupported
from hotbed.runtime.livefork.tracee import stop_idle
from hotbed.runtime.livefork.witness import Witness
from tests.unit.runtime.livefork.idling import Idle, forked, idle

SHARED = "m = mmap.mmap(-1, 4096)"


def take(process: Idle, *, skip: bool = False) -> Capture:
    """One of a process that has nothing to do with the witness: everything is a stranger."""
    pid, end = forked()
    witness = Witness(pid, trust_places=False)
    tracee = stop_idle(process.pid, 3, patience_s=5)
    tracee.begin()
    try:
        return capture.take(tracee, witness, [], skip=skip, verify=True)
    finally:
        tracee.release()
        witness.close()
        os.close(end)
        os.waitpid(pid, 0)


def test_every_page_of_its_own_is_there() -> None:
    """With its content: a marker of the heap is in the image, and the process goes on."""
    with idle("x = bytearray(b'marker-' * 3000)", after="print(len(x))") as process:
        taken = take(process)

        assert taken.image.bytes().count(b"marker-marker-") > 1000
        assert taken.image.size == sum(end - start for start, end in taken.image.runs)
        assert taken.digests
        assert process.go_on() == "21000\ndone\n"
        taken.image.close()


def test_a_shared_mapping_is_refused_or_left_out() -> None:
    """By name."""
    with idle(SHARED) as process:
        with pytest.raises(Unsupported, match="a shared mapping"):
            take(process)
        taken = take(process, skip=True)

        assert [name for name in taken.skipped if "shared mapping" in name]
        assert not [one for one in taken.mappings if one.shared and "w" in one.rights]
        taken.image.close()
