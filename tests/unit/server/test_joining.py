"""A head and its body leave in one write, and no head waits for a body that does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hotbed.server.joining import JoinedWrites


class Recorded(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it."""
        assert not self.closed
        self.written.append(bytes(data))

    def close(self) -> None:
        """No more after this."""
        self.closed = True

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closed

    def get_write_buffer_size(self) -> int:
        """Something that only the transport knows."""
        return 7


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


def after_a_turn(use: Callable[[JoinedWrites], None]) -> Recorded:
    """What was written by the loop's next turn."""

    async def run() -> Recorded:
        transport = Recorded()
        use(JoinedWrites(transport, asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return transport

    return asyncio.run(run())


def test_head_and_body_are_one_write() -> None:
    """And what follows is its own."""

    def use(joined: JoinedWrites) -> None:
        for data in (HEAD, b"body", b"more"):
            joined.write(data)

    assert after_a_turn(use).written == [HEAD + b"body", b"more"]


def test_a_head_alone_leaves_at_the_next_turn() -> None:
    """A stream may begin long after it was announced."""
    assert after_a_turn(lambda joined: joined.write(HEAD)).written == [HEAD]


def test_closing_writes_what_is_held() -> None:
    """Once."""

    def use(joined: JoinedWrites) -> None:
        joined.write(HEAD)
        joined.close()

    found = after_a_turn(use)
    assert found.written == [HEAD] and found.closed


def test_nothing_is_written_to_a_transport_that_was_aborted() -> None:
    """The client hung up meanwhile."""

    def use(joined: JoinedWrites) -> None:
        joined.write(HEAD)
        joined._transport.close()

    assert after_a_turn(use).written == []


def test_everything_else_is_the_transport_s() -> None:
    """uvicorn asks for more than it writes."""
    found: list[int] = []
    after_a_turn(lambda joined: found.append(joined.get_write_buffer_size()))

    assert found == [7]
