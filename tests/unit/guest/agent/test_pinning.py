"""A process pins itself before it runs anything of the candidate's."""

from __future__ import annotations

import os
import random

import pytest

from hotbed.guest import kernel
from hotbed.guest.agent import pinning
from hotbed.guest.agent.pinning import NotPinned, Pinning
from tests.unit.runtime.replay.supervised import SEED, Supervised, supervised


def entered(node: Supervised, seed: bytes) -> bytes:
    """What `enter` returned in a child."""
    pin_id, channel = node.pin(seed)
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.write(sink, Pinning().enter(channel, "rng"))
        os._exit(0)
    channel.close()
    entropy = os.read(source, 1000)
    os.waitpid(pid, 0)
    os.close(source)
    os.close(sink)
    node.final(pin_id)
    return entropy


def test_entropy_is_the_seed_s() -> None:
    """The interpreter's own generators go on with it."""
    with supervised() as node:
        entropy = entered(node, SEED)

        assert len(entropy) == pinning.ENTROPY_BYTES
        assert entered(node, SEED) == entropy
        assert entered(node, bytes(32)) != entropy


def test_what_is_started_later_is_pinned_too() -> None:
    """The filter is inherited, and nothing takes it off."""
    with supervised() as node:

        def generations() -> str:
            source, sink = os.pipe()
            for _ in range(3):
                if os.fork():
                    os.wait()
                    os._exit(0)
            os.write(sink, os.urandom(4))
            return os.read(source, 4).hex()

        def draw() -> str:
            source, sink = os.pipe()
            if os.fork() == 0:
                os.write(sink, generations().encode())
                os._exit(0)
            os.wait()
            return os.read(source, 99).decode()

        assert len({node.run(draw)[0] for _ in range(3)}) == 1


def test_an_architecture_that_it_was_not_made_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers would be other calls."""
    pins = Pinning()
    monkeypatch.setattr(kernel, "SUPPORTED", False)
    with supervised() as node:
        _, channel = node.pin()
        with channel, pytest.raises(NotPinned, match="architecture"):
            pins.enter(channel, "rng")


def test_a_process_that_may_not_install_filters_is_not_pinned() -> None:
    """No new privileges comes first; without it the kernel refuses."""
    with supervised() as node:
        _, channel = node.pin()
        pid = os.fork()
        if pid == 0:
            try:
                kernel.keep_capabilities(0)
                Pinning().enter(channel, "rng")
            except NotPinned:
                os._exit(7)
            os._exit(0)
        channel.close()

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_constants_agree_with_the_kernel_s() -> None:
    """Drawn in one call, checked in part."""
    assert pinning.CHECK_BYTES + pinning.ENTROPY_BYTES <= 256  # getrandom(2) gives so much at once
    assert random.Random(b"x" * pinning.ENTROPY_BYTES) is not None


@pytest.mark.parametrize(
    ("libc", "asks"),
    [
        (("glibc", "2.36"), False),
        (("glibc", "2.41"), True),
        (("glibc", "3.0"), True),
        (("", ""), True),
        (("glibc", "x"), True),
    ],
)
def test_an_interpreter_whose_library_asks_the_vdso_says_so(libc: tuple[str, str], asks: bool) -> None:
    """It was there before the process was pinned, so it is patched then; where it is not asked, that is saved."""
    assert pinning.asks_vdso(libc) is asks
