"""The judge's end of the calls: what a candidate's answers, exceptions and callbacks can and cannot do."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from hotbed.guest.judging import calls, proxies, sealing
from tests.support.judging import asked

CODE = """
def solve(xs): return sorted(xs)
class Bad(ValueError): pass
def boom(x): raise Bad("no", x)
def apply(f, x): return f(x)
def count(n):
    for i in range(n): yield i
def bump(thing): thing.value += 1; return thing.value
def add(thing): thing["a"] = len(thing); return "a" in thing
def drain(it): return list(it)
async def later(x): return x + 1
def stop(): raise StopIteration
def reach(f, name): return getattr(f, name)
def leave(): import os; os._exit(0)
def sleep(s): import time; time.sleep(s)
def inside(f): return [f(i) for i in range(3)]
def endless(f):
    while True: f(0)
"""


def run(peer: sealing.JudgePeer, name: str, *args: Any, **kwargs: Any) -> Any:
    return peer.question("run", name, args, kwargs)


def test_calls_exceptions_and_iterators() -> None:
    """Plain answers, mapped exceptions, generators item by item, coroutines awaited."""
    with asked(CODE) as peer:
        assert run(peer, "solve", [3, 1, 2]) == [1, 2, 3]
        bad = peer.export("Bad")
        with pytest.raises(bad) as caught:
            run(peer, "boom", 1)
        assert isinstance(caught.value, ValueError) and caught.value.args == ("no", 1)
        assert list(run(peer, "count", 3)) == [0, 1, 2]
        assert asyncio.run(run(peer, "later", 1)) == 2


def test_callbacks_and_objects_of_the_tests() -> None:
    """Functions are called here, public attributes are read and written here, exceptions keep their identity."""

    class Thing:
        value = 3

    class Own(Exception):
        pass

    def raises(x: int) -> None:
        raise Own(x)

    def nested(x: int) -> Any:
        return run(peer, "solve", [x, 0])

    with asked(CODE) as peer:
        thing = Thing()
        assert run(peer, "apply", lambda x: x * 2, 21) == 42
        assert run(peer, "bump", thing) == 4 and thing.value == 4
        assert run(peer, "inside", nested) == [[0, 0], [0, 1], [0, 2]]
        assert run(peer, "drain", iter([1, 2])) == [1, 2]
        with pytest.raises(Own):
            run(peer, "apply", raises, 1)


@pytest.mark.parametrize("name", ["__globals__", "__code__", "gi_frame", "_hidden", "__class__"])
def test_nothing_behind_what_was_lent_can_be_reached(name: str) -> None:
    """A function's globals hold the expected values."""

    class Thing:
        _hidden = 1

    with asked(CODE) as peer:
        for lent in (lambda x: x, Thing(), iter([1])):
            if name == "__class__":  # the stand-in's own class, over there
                assert proxies.live(run(peer, "reach", lent, name)) is not None
            else:
                with pytest.raises(AttributeError):
                    run(peer, "reach", lent, name)


def test_a_call_cannot_end_an_iteration_of_the_tests() -> None:
    """`all(map(check, ...))` would be true after the first StopIteration."""
    with asked(CODE) as peer:
        with pytest.raises(Exception, match="^$") as caught:
            list(map(lambda _: run(peer, "stop"), [1, 2]))
        assert not isinstance(caught.value, StopIteration)


def test_a_dead_candidate_is_over_for_good() -> None:
    """What ends it passes through the tests' own `except Exception`."""
    with asked(CODE) as peer:
        for _ in range(2):
            with pytest.raises(sealing.Over, match="ended"):
                run(peer, "leave")


def test_sleeping_ends_at_the_wall_limit() -> None:
    """CPU limits do not see a sleeper."""
    started = time.monotonic()
    with asked(CODE, wall_s=0.3) as peer:
        with pytest.raises(sealing.Over) as caught:
            run(peer, "sleep", 60)
    assert caught.value.status == "timeout" and time.monotonic() - started < 3


def test_endless_callbacks_end_at_the_wall_limit() -> None:
    """They keep the channel busy, and are no answer."""
    with asked(CODE, wall_s=0.3) as peer:
        with pytest.raises(sealing.Over, match="no answer"):
            run(peer, "endless", lambda x: x)


def test_waiting_for_a_cpu_extends_the_wall_limit() -> None:
    """An honest program on a loaded machine is not late; a sleeper is, at four times the limit at the latest."""
    told: list[str] = []
    patience = sealing.Patience(0.4, waited=lambda: 1.0, slow=lambda: told.append("slow"))
    patience.begin()
    time.sleep(0.45)
    patience.wait(0)

    with pytest.raises(sealing.Over):
        for _ in range(400):
            time.sleep(0.01)
            patience.wait(0)
    assert told == ["slow"]


def test_an_answer_before_its_question_is_tampering() -> None:
    """Replies queued ahead are for questions nobody has asked."""
    code = CODE + (
        "import socket, struct, os\n"
        "def ahead():\n"
        "    for fd in range(3, 4096):\n"
        "        try: s = socket.socket(fileno=os.dup(fd)); s.sendall(b'')\n"
        "        except OSError: continue\n"
        "        m = b'[1,\"k\"]\\n1'; s.sendall((struct.pack('!I', len(m)) + m) * 3)\n"
    )
    with asked(code, ["ahead"]) as peer:
        try:
            run(peer, "ahead")
            with pytest.raises(sealing.Over):
                run(peer, "ahead")
        except sealing.Over:
            pass
        assert peer.tampered


def test_channel_is_the_only_thing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about nothing that was lent breaks the protocol."""
    with asked(CODE) as peer:
        with pytest.raises(calls.Broken):
            peer.perform("call", 0, [], {})
