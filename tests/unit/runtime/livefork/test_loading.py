"""From one process to another of the same origin, without a sandbox around them.

What a sandbox adds, that the vessel has no rights, is left out here; tests/escape has it.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hotbed.runtime.livefork import capture, facts, loading, pages
from hotbed.runtime.livefork.runs import PAGE
from hotbed.runtime.livefork.tracee import Lost, stop_idle
from hotbed.runtime.livefork.witness import Witness

STATE = mmap.mmap(-1, 64 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def spawn(change: int) -> tuple[int, int, int]:
    """A fork of this process that writes to its memory, waits, and then tells what is in it."""
    order, ordering = os.pipe()
    telling, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(order, 3)
        os.dup2(told, 1)
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)
        os.dup2(told, 2)
        os.closerange(4, 1 << 20)
        mine = change
        for page in range(0, 64, 8):
            STATE[(page + change) * PAGE] = change
        os.write(1, b"!")
        os.read(3, 1)
        seen = bytes(STATE[page * PAGE] for page in range(64))
        os.write(1, bytes([mine]) + seen)
        os._exit(0)
    os.close(order)
    os.close(told)
    assert os.read(telling, 1) == b"!"
    return pid, ordering, telling


@pytest.fixture
def two() -> Iterator[list[tuple[int, int, int]]]:
    """An original and a vessel."""
    STATE[:] = bytes([9]) * (64 * PAGE)
    made = [spawn(1), spawn(2)]
    yield made
    for pid, ordering, telling in made:
        os.close(ordering)
        os.close(telling)
        with suppress(ChildProcessError, ProcessLookupError):  # it was killed and reaped
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("places", [False, pages.places_are_visible()])
def test_a_vessel_becomes_the_original(
    two: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch, places: bool
) -> None:
    """Pages, registers and all; what the vessel had written is gone; every page is compared."""
    (original, go_on, told), (vessel, order, heard) = two
    monkeypatch.setattr(facts, "has_no_rights", lambda _: True)
    monkeypatch.setattr(facts, "inside_number", lambda _: 2)
    quiet, _, _ = still = spawn(3)
    witness = Witness(quiet, trust_places=places)
    source = stop_idle(original, 3, patience_s=5)
    source.begin()
    taken = capture.take(source, witness, [], skip=True, verify=True)
    source.release()
    target = stop_idle(vessel, 3, patience_s=5)
    target.begin()
    loading.load(target, taken, verify=True)
    for end in (go_on, order):
        os.write(end, b"x")
    expected, found = os.read(told, 100), os.read(heard, 100)
    witness.close()
    taken.image.close()
    os.close(still[1])
    os.close(still[2])
    os.kill(quiet, signal.SIGKILL)  # another fork may hold the pipe that it waits on
    os.waitpid(quiet, 0)

    assert expected[0] == 1
    assert found == expected


def test_a_process_with_rights_is_no_vessel(two: list[tuple[int, int, int]]) -> None:
    """It is killed, not filled."""
    (original, _, _), (vessel, _, _) = two
    witness = Witness(vessel, trust_places=False)
    source = stop_idle(original, 3, patience_s=5)
    source.begin()
    taken = capture.take(source, witness, [], skip=True, verify=False)
    source.release()
    with pytest.raises(Lost, match="rights"), stop_idle(vessel, 3, patience_s=5) as target:
        target.begin()
        loading.load(target, taken)
    witness.close()
    taken.image.close()
