"""Stopped calls, and every way of answering one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from hotbed.guest import kernel
from hotbed.guest.agent.pinning import Filter
from hotbed.runtime.linux import notify


def stopped(program: Callable[[], object], answer: Callable[[int, notify.Call], None]) -> str:
    """What a child says whose first stopped call is answered by `answer`."""
    ours, theirs = socket.socketpair()
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        listener = Filter("rng").install()
        socket.send_fds(theirs, [b"x"], [listener])
        os.close(listener)
        try:
            said = str(program())
        except OSError as error:
            said = f"errno {error.errno}"
        os.write(sink, said.encode())
        os._exit(0)
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    notify.stay_on_one_cpu(listener)
    call = notify.receive(listener)
    assert call is not None
    assert call.tid == pid
    answer(listener, call)
    said = os.read(source, 1000).decode()
    os.waitpid(pid, 0)
    for fd in (listener, source, sink):
        os.close(fd)
    ours.close()
    theirs.close()
    return said


def test_a_call_can_be_answered_with_a_value() -> None:
    """getrandom says how many bytes it gave."""
    assert stopped(lambda: len(os.getrandom(5)), lambda fd, call: notify.answer(fd, call.id, 3)) == "3"


def test_a_call_can_be_refused() -> None:
    """With any errno."""
    assert stopped(lambda: os.getrandom(5), lambda fd, call: notify.refuse(fd, call.id, 28)) == "errno 28"


def test_a_call_can_go_on() -> None:
    """As if there were no filter."""
    assert stopped(lambda: len(os.getrandom(5)), lambda fd, call: notify.proceed(fd, call.id)) == "5"


def test_a_call_can_be_given_a_descriptor() -> None:
    """An open that opens something else."""

    def give(listener: int, call: notify.Call) -> None:
        source, sink = os.pipe()
        os.write(sink, b"ours")
        notify.give_fd(listener, call.id, source, close_on_exec=True)
        os.close(source)
        os.close(sink)

    assert stopped(lambda: os.read(os.open("/dev/null", os.O_RDONLY), 9), give) == "b'ours'"


def test_arguments_are_the_caller_s() -> None:
    """Number and words, as the kernel saw them."""
    seen = []

    def look(listener: int, call: notify.Call) -> None:
        seen.append((call.number, call.arguments[1], call.arguments[2]))
        notify.proceed(listener, call.id)

    stopped(lambda: os.getrandom(11, os.GRND_NONBLOCK), look)

    assert seen == [(318, 11, os.GRND_NONBLOCK)]
