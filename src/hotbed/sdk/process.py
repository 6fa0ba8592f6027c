"""A process that is talked to while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic

from hotbed.errors import DeadlineExceeded, NodeUnavailable
from hotbed.sdk.blocking_socket import BlockingSocket
from hotbed.sdk.process_talk import PIECE, Piece, ProcessTalk, as_bytes, control, request_message
from hotbed.sdk.results import Result
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import Message
from hotbed.wire.processes import PROCESS_SOCKET, Control, ProcessRequest


class Process:
    """A program with open input, from `Sandbox.process`. Usable from several threads.

    Iterate to get its output as it comes, `(stream, data)` with stream 1 or 2; on a terminal, all of it is stream 1.
    Leaving `with`, or closing it, kills it and all that it started.
    """

    def __init__(self, socket: BlockingSocket) -> None:
        self._socket = socket
        self._talk = ProcessTalk()
        self._changed = threading.Condition()
        self._hearing = False

    @classmethod
    def _start(cls, link: Link, sandbox_id: str, request: ProcessRequest) -> Process:
        socket = BlockingSocket.open(link, PROCESS_SOCKET.format(id=sandbox_id))
        made = cls(socket)
        try:
            socket.send(*request_message(request))
            while not made._talk.started and not made._talk.is_over:
                made._hear(None)
            if made._talk.failure is not None:
                raise made._talk.failure
        except BaseException:
            made.close()
            raise
        return made

    def write(self, data: str | bytes) -> None:
        """Give it input. Waits while it has not read what came before; one that has ended reads nothing."""
        left = as_bytes(data)
        while left and not self._talk.is_over:
            self._until(self._talk.has_room)
            with self._changed:
                message = self._talk.input(left[:PIECE])
            left = left[PIECE:]
            self._say(message)

    def end_input(self) -> None:
        """There will be no more input; on a terminal, as Ctrl-D."""
        self._say(control(Control(op="end_input")))

    def signal(self, number: int) -> None:
        """Signal its process group."""
        self._say(control(Control(op="signal", signal=int(number))))

    def resize(self, rows: int, columns: int) -> None:
        """Its terminal has another size now."""
        self._say(control(Control(op="resize", rows=rows, columns=columns)))

    def kill(self) -> None:
        """End it and all that it started; its result says `signal`."""
        self._say(control(Control(op="kill")))

    def read(self, timeout_s: float | None = None) -> Piece | None:
        """The next piece of its output, `(stream, data)`; None when there is no more. Raises `DeadlineExceeded`."""
        self._until(lambda: bool(self._talk.pieces) or self._talk.is_over, timeout_s)
        with self._changed:
            if self._talk.pieces:
                return self._talk.pieces.popleft()
        self._talk.outcome()
        return None

    def wait(self, timeout_s: float | None = None) -> Result:
        """Its result, once it has ended. Output that was not read is dropped here; the result holds it."""
        self._until(lambda: self._talk.is_over, timeout_s, keep=False)
        return self._talk.outcome()

    @property
    def ended(self) -> bool:
        """Whether its end has been heard of."""
        return self._talk.is_over

    def close(self) -> None:
        """Kill it if it runs, and let go. Idempotent."""
        self._socket.close()

    def _say(self, message: Message) -> None:
        if self._talk.is_over:
            return
        try:
            self._socket.send(*message)
        except OSError as reason:
            self._lost(reason)

    def _until(self, condition: Callable[[], bool], timeout_s: float | None = None, *, keep: bool = True) -> None:
        """Hear what comes until a condition holds. One thread hears for all."""
        deadline = None if timeout_s is None else monotonic() + timeout_s
        while True:
            with self._changed:
                if not keep:
                    self._talk.pieces.clear()
                if condition():
                    return
                if self._hearing:
                    self._changed.wait(_left(deadline))
                    continue
                self._hearing = True
            try:
                self._hear(_left(deadline))
            finally:
                with self._changed:
                    self._hearing = False
                    self._changed.notify_all()

    def _hear(self, timeout_s: float | None) -> None:
        try:
            message = self._socket.receive(timeout_s)
        except TimeoutError:
            raise DeadlineExceeded("it has not happened in that time") from None
        except OSError as reason:
            self._lost(reason)
        else:
            with self._changed:
                self._talk.hear(message)
            if self._talk.is_over:
                self._socket.close()

    def _lost(self, reason: OSError) -> None:
        self._talk.fail(NodeUnavailable(f"the node went away while it ran: {reason}"))
        self._socket.close()

    def __iter__(self) -> Iterator[Piece]:
        while (piece := self.read()) is not None:
            yield piece

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - monotonic()
    if left <= 0:
        raise DeadlineExceeded("it has not happened in that time")
    return left
