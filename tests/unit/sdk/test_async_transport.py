"""The asyncio driver gives what the blocking one gives."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hotbed.errors import DeadlineExceeded, NodeUnavailable
from hotbed.sdk import addresses, async_transport, calls
from hotbed.sdk.addresses import Address
from hotbed.sdk.calls import Call
from hotbed.sdk.client import Client
from hotbed.sdk.transport import Link
from tests.unit.sdk.conftest import ScriptedNode, answer, grant, read_request, say

Script = Callable[..., ScriptedNode]
OK = answer(b"{}")


def get(**changes: Any) -> Call[Any]:
    """A small call."""
    return Call(**{"method": "GET", "target": "/x", "read": bytes, **changes})


def ask(node: ScriptedNode, call: Call[Any]) -> Any:
    """Make one call on a loop of its own."""
    made = Link(Address(unix_path=node.path))
    try:
        return asyncio.run(made.asend(call))
    finally:
        made.close()


def test_one_client_works_on_one_loop_after_another(client: Client) -> None:
    """Kept connections belong to no loop."""
    assert [asyncio.run(client.link.asend(calls.health())).status for _ in range(3)] == ["ok"] * 3
    assert client.health().status == "ok"


def test_many_tasks_share_a_client(client: Client) -> None:
    """More than there are connections."""

    async def everyone() -> list[str]:
        return [
            health.status for health in await asyncio.gather(*(client.link.asend(calls.health()) for _ in range(600)))
        ]

    assert asyncio.run(everyone()) == ["ok"] * 600


def test_cancelled_call_hangs_up(script: Script) -> None:
    """Which is how the node learns to stop."""
    asked, hung_up = threading.Event(), threading.Event()

    def silent(connection: socket.socket) -> None:
        read_request(connection)
        asked.set()
        if connection.recv(1) == b"":
            hung_up.set()

    node = script(silent)

    async def cancel() -> None:
        made = Link(Address(unix_path=node.path))
        task = asyncio.get_running_loop().create_task(made.asend(get(method="POST")))
        await asyncio.to_thread(asked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        made.close()

    asyncio.run(cancel())
    assert hung_up.wait(5)


def test_node_that_never_answers_is_given_its_time(script: Script) -> None:
    """The same error as from the blocking face."""
    with pytest.raises(DeadlineExceeded, match=r"within 0\.1 s"):
        ask(script(read_request), get(timeout_s=0.1))


@pytest.mark.parametrize("within", [async_transport._within, async_transport._until_expired])
def test_time_runs_out_and_cancellation_is_never_lost(within: Callable[..., Any]) -> None:
    """Also when it arrives in the instant in which the work is done."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            await within(0.01, loop.create_future())
        assert await within(5, asyncio.sleep(0, "done")) == "done"
        done = loop.create_future()

        async def work_twice() -> None:
            await within(5, done)
            await within(5, loop.create_future())

        task = loop.create_task(work_twice())
        await asyncio.sleep(0)
        done.set_result(None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())


def test_node_that_dies_is_reported(script: Script) -> None:
    """The same again."""

    def die(connection: socket.socket) -> None:
        read_request(connection)
        connection.close()

    with pytest.raises(NodeUnavailable, match="may have run"):
        ask(script(die), get(method="POST"))


def test_lease_is_taken_without_blocking_the_loop(script: Script) -> None:
    """It takes a round trip."""
    node = script(grant, say(OK))

    assert ask(node, get(leased=True)) == b"{}"


def test_upload_and_download_stream(script: Script) -> None:
    """Through the same steps."""
    sink = io.BytesIO()

    ask(script(say(answer(b"file"))), get(sink=sink))

    assert sink.getvalue() == b"file"


def test_upload_is_pulled_from_its_source(script: Script) -> None:
    """In a thread: disks block."""
    seen: list[bytes] = []

    def note(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(OK)

    ask(script(note), get(method="PUT", upload=iter([b"ab", b"c"]), upload_length=3))

    assert seen[0].endswith(b"\r\n\r\nabc")


def test_refusal_is_waited_out_without_blocking_the_loop(script: Script) -> None:
    """The node says how long."""
    full = answer(b'{"code": "at_capacity", "message": "full"}', "429 Too Many", "Retry-After: 0\r\n")

    assert ask(script(say(full, OK)), get(method="POST")) == b"{}"


def test_dead_local_node_is_revived(script: Script) -> None:
    """In a thread: starting one takes a moment."""
    old, new = script(), script(say(OK))
    old.close()
    made = Link(Address(unix_path=old.path), revive=lambda: Address(unix_path=new.path))

    assert asyncio.run(made.asend(get())) == b"{}"
    made.close()


def test_tls_runs_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the blocking driver."""
    monkeypatch.setattr(addresses, "secure", lambda plain, host: plain)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                say(OK)(connection)

        server = threading.Thread(target=serve)
        server.start()
        made = Link(Address(host="127.0.0.1", port=listener.getsockname()[1], tls=True))

        assert asyncio.run(made.asend(get())) == b"{}"
        made.close()
        server.join()


def test_failing_sink_is_the_callers_failure(script: Script) -> None:
    """A full disk of ours is not a broken connection."""

    class Full:
        def write(self, data: bytes, /) -> None:
            raise OSError(28, "disk full")

    with pytest.raises(OSError, match="disk full"):
        ask(script(say(answer(b"file"))), get(sink=Full()))


def test_tcp_works_as_well(script: Script) -> None:
    """Names are resolved in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                say(OK)(connection)

        server = threading.Thread(target=serve)
        server.start()
        made = Link(Address(host="127.0.0.1", port=listener.getsockname()[1]))

        assert asyncio.run(made.asend(get())) == b"{}"
        made.close()
        server.join()
