"""Draws are served as the kernel would serve them, errors included."""

from __future__ import annotations

import os

from hotbed.guest import kernel
from tests.unit.runtime.replay.supervised import Supervised


def test_large_draws_are_served(node: Supervised) -> None:
    """os.urandom asks again until it has all."""
    size, _ = node.run(lambda: len(os.urandom(3 << 20)))

    assert size == str(3 << 20)


def test_a_bad_buffer_is_the_caller_s_fault_alone(node: Supervised) -> None:
    """The kernel says EFAULT; so do we, and the rollout goes on."""

    def draw_badly() -> str:
        try:
            kernel.call(318, 8, 100, 0)  # getrandom(2) into page zero
        except OSError as error:
            return f"{error.errno} {len(os.urandom(4))}"
        return "served"

    assert node.run(draw_badly)[0] == "14 4"


def test_flags_that_the_kernel_refuses_are_refused(node: Supervised) -> None:
    """A program may probe for a flag."""

    def probe() -> int | None:
        try:
            os.getrandom(4, 1 << 20)
        except OSError as error:
            return error.errno
        return None

    assert node.run(probe)[0] == "22"


def test_what_was_asked_for_is_counted(node: Supervised) -> None:
    """A replay that differs names its likely source by what was used."""

    def ask() -> str:
        os.getrandom(1)
        os.close(os.open("/dev/null", os.O_RDONLY))
        return ""

    counts = node.run(ask)[1]["counts"]

    assert counts["draws"] == 1
    assert counts["opens"] >= 1
