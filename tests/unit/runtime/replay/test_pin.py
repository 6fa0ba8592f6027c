"""One pinned rollout, from its channel to its end."""

from __future__ import annotations

import os
import random
import socket

import pytest

from hotbed.guest import kernel
from hotbed.guest.agent import pinned_spawn
from hotbed.guest.agent.pinning import HELLO, SPAWNS, Pinning
from hotbed.runtime.replay.pin import Root
from tests.unit.runtime.replay.supervised import OTHER_SEED, SEED, Supervised


def test_draws_are_the_seed_s(node: Supervised) -> None:
    """Twice the same, and another seed another."""
    same = {node.run(lambda: os.urandom(16).hex())[0] for _ in range(2)}
    other, _ = node.run(lambda: os.urandom(16).hex(), OTHER_SEED)

    assert len(same) == 1
    assert other not in same


def test_a_verified_pin_says_what_it_pinned(node: Supervised) -> None:
    """The result's `pinned` is this list."""
    _, report = node.run(lambda: "")

    assert report["state"] == "verified"
    assert report["ended"]
    assert {"getrandom", "urandom", "at_random", "aslr"} <= set(report["pinned"])
    assert "clock" not in report["pinned"]


def test_level_full_says_that_it_pins_the_clock(node: Supervised) -> None:
    """A caller may rely on it."""
    _, report = node.run(lambda: "", level="full")

    assert "clock" in report["pinned"]


def test_a_process_that_ends_before_it_is_pinned_is_neither_verified_nor_a_failure(node: Supervised) -> None:
    """Nothing ran: there was no process left to fork, say."""
    pin_id, channel = node.pin()
    channel.close()
    report = node.final(pin_id)

    assert (report["state"], report["pinned"]) == ("pending", [])


def test_commands_one_after_the_other_share_a_channel(node: Supervised) -> None:
    """Each is forked by an agent that is not pinned, so each brings a listener of its own."""
    pin_id, channel = node.pin(roots=2)
    source, sink = os.pipe()
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            Pinning().enter(channel, "rng")
            os.write(sink, os.urandom(4))
            os._exit(0)
        os.waitpid(pid, 0)
    channel.close()
    first, second = os.read(source, 4), os.read(source, 4)
    report = node.final(pin_id)
    os.close(source)
    os.close(sink)

    assert (report["state"], report["counts"]["draws"]) == ("verified", 2)
    assert first != second


def test_a_wrong_draw_fails_the_pin(node: Supervised) -> None:
    """Verified means that the sandbox has seen the bytes, not that it was sent them."""
    pin_id, channel = node.pin()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        listener = Pinning()._filters["rng"].install()
        socket.send_fds(channel, [HELLO.pack(2, 0)], [listener])
        os.close(listener)
        os.getrandom(64)
        channel.send(bytes(32))
        os._exit(0)
    channel.close()
    report = node.final(pin_id)
    os.waitpid(pid, 0)

    assert (report["state"], report["message"]) == ("failed", "the sandbox drew other bytes than the seed implies")


@pytest.mark.slow
def test_many_rollouts_at_once_do_not_mix(node: Supervised) -> None:
    """One supervisor answers all of them."""
    expected = {seed: node.run(lambda: os.urandom(2000).hex(), seed)[0] for seed in (SEED, OTHER_SEED)}
    order = [SEED, OTHER_SEED] * 8
    random.Random(1).shuffle(order)
    running = []
    for seed in order:
        pin_id, channel = node.pin(seed)
        source, sink = os.pipe()
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            Pinning().enter(channel, "rng")
            os.write(sink, b"".join(os.urandom(20) for _ in range(100)).hex().encode())
            os._exit(0)
        channel.close()
        os.close(sink)
        running.append((seed, pid, source))

    for seed, pid, source in running:
        with open(source) as file:
            assert file.read() == expected[seed]
        os.waitpid(pid, 0)


def test_a_number_that_was_told_is_known_of_who_has_ended_too() -> None:
    """A short program may be over before it was looked at; of a command nothing is known by then."""
    program, command = (
        Root(-1, number, facts, name="0", check=b"") for number, facts in ((2, 0), (pinned_spawn.NUMBER, SPAWNS))
    )
    assert (program.has_first_number(), command.has_first_number()) == (True, False)

    program.begun = command.begun = command.met = True
    assert (program.has_first_number(), command.has_first_number()) == (True, True)
    assert not Root(-1, 3, 0, name="0", check=b"").has_first_number()
