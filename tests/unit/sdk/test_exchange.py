"""What is sent again, and what is not, decided without a socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotbed.errors import AtCapacity, DeadlineExceeded, NodeUnavailable, NotFound, ProtocolError, SandboxGone
from hotbed.sdk import calls
from hotbed.sdk.calls import Call
from hotbed.sdk.exchange import exchange
from hotbed.sdk.steps import Finish, Open, Opened, Pause, Pull, Push, Read, Revive, Write
from tests.unit.sdk.conftest import answer

OK = answer(b'{"x": 1}')
FULL = answer(b'{"code": "at_capacity", "message": "full"}', "429 Too Many", "Retry-After: 2\r\n")


def get(**changes: Any) -> Call[Any]:
    """A call that may be repeated."""
    return Call(**{"method": "GET", "target": "/v1/x", "read": bytes, **changes})


def post(**changes: Any) -> Call[Any]:
    """One that may not."""
    return get(method="POST", body=b"{}", **changes)


class Play:
    """Performs the steps of an exchange from a list of what each network step gives or raises."""

    def __init__(self, *answers: Any, revive: bool = False) -> None:
        self.answers = list(answers)
        self.done: list[str] = []
        self.revive = revive
        self.time = 0.0

    def run(self, call: Call[Any]) -> Any:
        steps = exchange(call, now=lambda: self.time)
        try:
            step = next(steps)
            while True:
                self.done.append(type(step).__name__)
                given = self.perform(step)
                step = steps.throw(given) if isinstance(given, Exception) else steps.send(given)
        except StopIteration as end:
            return end.value

    def perform(self, step: Any) -> Any:
        if isinstance(step, (Open, Read)):
            return self.answers.pop(0)
        if isinstance(step, Write) and self.answers and isinstance(self.answers[0], BrokenPipeError):
            return self.answers.pop(0)
        if isinstance(step, Pause):
            self.time += step.seconds
        if isinstance(step, Pull):
            return next(step.source, None)
        if isinstance(step, Push):
            step.sink.write(step.data)
        return self.revive if isinstance(step, Revive) else None


def fresh() -> Opened:
    """A connection just made."""
    return Opened(reused=False, headers=b"")


def kept() -> Opened:
    """One from the pool."""
    return Opened(reused=True, headers=b"")


def test_answer_is_read_and_the_connection_kept() -> None:
    """The common case is four steps."""
    play = Play(fresh(), OK)

    assert play.run(get()) == b'{"x": 1}'
    assert play.done == ["Open", "Write", "Read", "Finish"]


@pytest.mark.parametrize("make", [get, post])
def test_kept_connection_that_was_dead_before_it_took_anything_is_replaced(make: Callable[..., Call[Any]]) -> None:
    """The node closed it while it was idle; nobody needs to know."""
    play = Play(kept(), BrokenPipeError(), b"", fresh(), OK)

    assert play.run(make()) == b'{"x": 1}'


def test_get_on_a_kept_connection_that_ends_without_an_answer_is_repeated() -> None:
    """Asking twice is asking once."""
    assert Play(kept(), b"", fresh(), OK).run(get()) == b'{"x": 1}'


def test_post_that_ends_without_an_answer_is_never_repeated() -> None:
    """It may have run; only the caller knows whether twice is fine."""
    with pytest.raises(NodeUnavailable, match="may have run"):
        Play(kept(), b"").run(post())


def test_a_post_with_a_key_is_repeated_to_a_remote_node_only() -> None:
    """It does it once, under a key that stays the same; a local node's end is the end of all that it did."""
    written: list[bytes] = []

    class Keyed(Play):
        def perform(self, step: Any) -> Any:
            if isinstance(step, Write):
                written.append(step.data)
            return super().perform(step)

    def remote() -> Opened:
        return Opened(reused=False, headers=b"", remote=True)

    play = Keyed(remote(), ConnectionResetError(), remote(), answer(b"half")[:-2], ConnectionResetError(), remote(), OK)
    assert play.run(post(keyed=True)) == b'{"x": 1}'
    keys = {data.partition(b"idempotency-key: ")[2].partition(b"\r\n")[0] for data in written}
    assert len(written) == 3 and len(keys) == 1 and len(keys.pop()) == 24
    with pytest.raises(NodeUnavailable, match="may have run"):
        Play(fresh(), ConnectionResetError()).run(post(keyed=True))


def test_half_an_answer_is_not_repeated_even_for_a_get() -> None:
    """The node began to answer and died: that is news."""
    with pytest.raises(NodeUnavailable):
        Play(kept(), OK[:20], b"").run(get())


def test_refusal_is_waited_out_as_long_as_the_node_asks() -> None:
    """Nothing ran, so trying again is safe; the node's Retry-After is the least wait."""
    play = Play(fresh(), FULL, kept(), OK)

    assert play.run(post()) == b'{"x": 1}'
    assert play.time >= 2


def test_refusal_is_raised_when_patience_would_run_out() -> None:
    """The caller's own timeout bounds the waiting."""
    with pytest.raises(AtCapacity, match="full") as caught:
        Play(fresh(), FULL).run(post(patience_s=1.0))

    assert caught.value.retry_after_s == 2


def test_upload_is_not_retried_after_a_refusal() -> None:
    """Its bytes are gone."""
    with pytest.raises(AtCapacity):
        Play(fresh(), FULL).run(get(method="PUT", upload=iter([b"x"])))


def test_unreachable_node_is_tried_for_a_while_and_then_named() -> None:
    """Long enough for a restart, short enough for a person."""
    play = Play(*[ConnectionRefusedError(111, "refused") for _ in range(50)])

    with pytest.raises(NodeUnavailable, match="refused"):
        play.run(post())
    assert 1 < play.time <= 5


def test_local_node_is_revived_before_anything_else() -> None:
    """An embedded node that died is started again, without a wait."""
    play = Play(ConnectionRefusedError(), fresh(), OK, revive=True)

    assert play.run(post()) == b'{"x": 1}'
    assert play.time == 0


def test_early_refusal_of_a_large_body_is_heard() -> None:
    """The node answers 413 and hangs up while we still send."""
    refusal = answer(b'{"code": "too_large", "message": "too much"}', "413 Too Large")

    with pytest.raises(Exception, match="too much"):
        Play(fresh(), BrokenPipeError(), refusal).run(post())


def test_upload_is_sent_in_chunks_when_its_length_is_unknown() -> None:
    """And ends with the empty chunk."""
    play = Play(fresh(), OK)

    play.run(get(method="PUT", upload=iter([b"a", b"", b"b"])))

    assert play.done.count("Write") == 4


def test_download_passes_through_and_errors_do_not() -> None:
    """A sink gets the file's bytes, never an error body."""
    got: list[bytes] = []

    class Sink:
        def write(self, data: bytes, /) -> None:
            got.append(data)

    Play(fresh(), answer(b"file")).run(get(sink=Sink()))
    with pytest.raises(NotFound):
        Play(fresh(), answer(b'{"code": "not_found", "message": "m"}', "404 No")).run(get(sink=Sink()))

    assert got == [b"file"]


def test_sandbox_that_the_node_does_not_know_any_more_is_gone() -> None:
    """We had it, so it did exist."""
    missing = answer(b'{"code": "not_found", "message": "no such sandbox"}', "404 No")

    with pytest.raises(SandboxGone, match="sb1 is gone"):
        Play(fresh(), missing).run(post(sandbox_id="sb1"))


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"[]", b'{"code": 7}'])
def test_error_that_is_not_ours_is_a_protocol_error(body: bytes) -> None:
    """A proxy in between, or a wrong URL."""
    with pytest.raises(ProtocolError, match="502"):
        Play(fresh(), answer(body, "502 Bad Gateway")).run(get())


def test_time_that_runs_out_says_that_it_may_have_run() -> None:
    """The caller must know."""
    with pytest.raises(DeadlineExceeded, match="may have run"):
        Play(fresh(), TimeoutError()).run(post())


def test_upload_that_is_cut_off_is_never_sent_again() -> None:
    """Its source has been read."""
    with pytest.raises(NodeUnavailable, match="may have run"):
        Play(kept(), BrokenPipeError(), b"").run(get(method="PUT", upload=iter([b"x"])))


def test_streaming_call_is_bounded_by_each_wait_and_not_by_the_whole() -> None:
    """A download may take hours as long as bytes come."""
    play = Play(fresh(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", b"b")
    got: list[bytes] = []

    class SlowSink:
        def write(self, data: bytes, /) -> None:
            play.time += 1000
            got.append(data)

    play.run(get(sink=SlowSink(), timeout_s=5))

    assert got == [b"a", b"b"]


def test_ordinary_call_is_bounded_as_a_whole() -> None:
    """Bytes that drip do not extend it."""

    class Dripping(Play):
        def perform(self, step: Any) -> Any:
            self.time += 3
            return super().perform(step)

    with pytest.raises(DeadlineExceeded):
        Dripping(fresh(), OK[:5], OK[5:9]).run(get(timeout_s=5))


def test_finish_tells_whether_to_keep_the_connection() -> None:
    """An answer that announces its end is believed."""
    steps = exchange(get())
    next(steps)
    steps.send(fresh())
    steps.send(None)
    step = steps.send(answer(b"", headers="Connection: close\r\n"))

    assert isinstance(step, Finish)
    assert not step.reusable


def test_calls_name_themselves_in_messages() -> None:
    """With the path, without the query."""
    with pytest.raises(NodeUnavailable, match=r"PUT /v1/sandboxes/s/files \("):
        Play(fresh(), BrokenPipeError(), b"").run(calls.put_file("s", "/work/x", iter([b"x"]), 1))


def test_a_lease_that_is_not_held_any_more_is_replaced() -> None:
    """The old node drains while its successor answers: nothing was run, so the call goes out under another lease."""
    gone = answer(b'{"code": "lease_gone", "message": "not held here"}', "410 Gone")
    opened = Opened(reused=False, headers=b"")
    play = Play(opened, gone, opened, OK)

    assert play.run(post(leased=True)) == b'{"x": 1}'
    assert play.done.count("Revive") == 1

    with pytest.raises(SandboxGone):
        Play(*[opened, gone] * 3).run(post(leased=True))
