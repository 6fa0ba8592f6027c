"""One candidate as a judge reaches it."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from hotbed.grading import UnitTestReward
from hotbed.grading.protocol import judge_spec
from hotbed.guest import frames
from hotbed.guest.judging import candidate, sealing
from hotbed.guest.judging.judge_candidate import Candidate, Lost, Missing, StubModule
from tests.support.judging import start

SPEC = judge_spec(UnitTestReward(tests="assert solve(1)"), "0" * 64)
CODE = b"def solve(x): return x\nlimit = [3]\n"


def reached() -> tuple[Candidate, int]:
    ours, theirs = socket.socketpair()
    pid = start(candidate.main, theirs, [ours])
    return Candidate(ours, CODE, [], SPEC), pid


def test_the_module_gives_stubs_values_and_what_is_missing() -> None:
    """`from solution import ...` in the tests."""
    found, _ = reached()
    peer, names = found.load(["*"])
    module: Any = StubModule("solution", peer, names, ["solve", "limit", "other"])

    assert module.solve(4) == 4 and module.limit == [3] and set(module.__all__) == {"solve", "limit"}
    with pytest.raises(Missing, match="nope"):
        module.nope  # noqa: B018  the access is what is tested
    found.close(__import__("hotbed.guest.judging.judge_checks", fromlist=["Verdict"]).Verdict())


@pytest.mark.parametrize("word", [b"", b"\0\0\0\x10"])
def test_who_was_never_there_is_lost(word: bytes) -> None:
    """What a template says when it could not make the sandbox is no word of a candidate."""
    for code in (CODE, b"#" * (1 << 20)):
        ours, theirs = socket.socketpair()
        found = Candidate(ours, code, [], SPEC)
        theirs.sendall(word)
        theirs.close()
        with pytest.raises(Lost):
            found.load(["solve"])
        found.forget()


@pytest.mark.parametrize("answer", [{"op": "other"}, None])
def test_a_control_channel_that_lies_or_closes_is_over(answer: dict[str, Any] | None) -> None:
    """The candidate's own process may have been taken over."""
    ours, theirs = socket.socketpair()
    found = Candidate(ours, CODE, [], SPEC)
    theirs.sendall(candidate.HERE)
    if answer is not None:
        frames.send(theirs, answer)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(sealing.Over):
        found.session(["solve"])
    theirs.close()
    found.forget()
