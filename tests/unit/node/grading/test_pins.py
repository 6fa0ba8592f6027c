"""What a grade says of its seed: never more than every process of the candidate had."""

from __future__ import annotations

from hotbed.grading.verdicts import GradeResult, infra_failure
from hotbed.node.grading.members import Member
from hotbed.node.grading.pins import Pins, echoed

MEMBER = Member(index=0, candidate="", seed="ab" * 32, determinism="rng")
LOOSE = Member(index=0, candidate="", seed="ab" * 32)
PASSED = GradeResult(reward=1.0)


def said(*processes: tuple[str, tuple[str, ...]], member: Member = MEMBER) -> tuple[str | None, str, tuple[str, ...]]:
    """Seed, acknowledgement and pins after these processes."""
    pins = Pins(member)
    for ack, pinned in processes:
        pins.add(ack, pinned)
    result = pins.on(PASSED)
    return result.seed, result.seed_ack, result.pinned


def test_what_held_for_all_is_told() -> None:
    """A later process has a later number."""
    first = ("verified", ("getrandom", "pid", "hostname"))

    assert said(first) == ("ab" * 32, *first)
    assert said(first, ("verified", ("getrandom", "hostname"))) == ("ab" * 32, "verified", ("getrandom", "hostname"))


def test_the_weakest_acknowledgement_counts() -> None:
    """Wherever it stood, and where nothing ran at all."""
    good, unknown = ("verified", ("getrandom",)), ("no-ack", ())

    assert said(good, unknown)[1:] == said(unknown, good)[1:] == said()[1:] == ("no-ack", ())


def test_nothing_is_claimed_without_a_determinism() -> None:
    """The seed is told all the same."""
    assert said(("off", ()), member=LOOSE) == ("ab" * 32, "off", ())


def test_what_never_came_to_run_names_its_seed_too() -> None:
    """By which it can be asked for again; a result that has one is left alone."""
    failed = echoed(MEMBER, infra_failure("no sandbox"))
    known = Pins(MEMBER).on(PASSED)

    assert (failed.seed, failed.seed_ack) == ("ab" * 32, "no-ack")
    assert echoed(LOOSE, infra_failure("no sandbox")).seed_ack == "off"
    assert echoed(MEMBER, known) is known
