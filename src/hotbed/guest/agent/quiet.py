"""The short way of a program: from its frame to its answer, with as little of the agent as will do.

Most of what runs in a sandbox is code that is the only thing in there, prints a little and ends. For that this module
reads the frame, forks the runner (or hands the program to one that waits), reads its two pipes to their ends, answers,
and waits for the next frame. The loop, its timers, a job's books, the agent itself: all that is made only when
something else happens. Each page that it would write to is a fault saved, in a process that is paid for by its pages.

Whatever is not so leads off it, at any moment, and nothing is lost: a frame that asks for something else goes to the
agent unread (`serve` returns None); a program that was started is handed over as it is (`Running`) at its deadline,
when it has printed much, when the node says something, when any child ends (an orphan, too, has to be reaped), or when
it has ended in any other way than well.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import frames
from . import runner
from .box import NULL, Box
from .capture import appended, pipes
from .execs import result
from .forking import fork
from .memory import is_watched
from .orderlog import OrderLog, Run
from .request import Refused, texts, variables
from .runner import Work
from .spare import Parking
from .stdio import Stdio

_PLAIN = frozenset("op id kind program stdin cwd timeout_s output_bytes output_kill_bytes stream last args env".split())
_CHUNK = 64 << 10  # what a pipe holds, and what a program may print on this way
_READABLE = int(select.POLLIN)
_CLOEXEC = int(socket.MSG_CMSG_CLOEXEC)
_exit = os._exit  # by a name of its own, so that a rehearsal can leave it out (see `warming`)


class Running(NamedTuple):
    """A program that was started on this way."""

    header: frames.Header
    program: bytes
    begun_ns: int
    pid: int
    log: OrderLog
    mark: Optional[int]
    ends: List[int]  # of its output; -1 is closed
    printed: List[Tuple[int, bytes]]  # by stream, as it came


def fits(config: Mapping[str, Any]) -> bool:
    """Whether `code` in such a sandbox is for this interpreter, and its memory for others to watch."""
    return bool(config.get("python", True)) and not config.get("interpreter") and not is_watched(config)


def serve(box: Box, stdio: Stdio, parking: Optional[Parking] = None) -> Optional[Running]:
    """Run one program after the other. Returns one that goes on on the other way, or None to have frames read there."""
    sock = box.connection.sock
    while box.rest():
        data, ancillary, _, _ = sock.recvmsg(_CHUNK, frames.FDS_ROOM, _CLOEXEC)
        header = None if ancillary or (parking is not None and parking.holds_starter) else plain(data)
        running = None if header is None else start(box, header, data, stdio, parking)
        if running is None:
            box.connection.take(data, ancillary)
            return None
        if not read_to_the_end(box, running) or not answer(box, running):
            return running
        if running.header.get("last"):
            if os.getpid() == 1:
                _exit(0)  # and with it all that is left here: sooner than the node could ask for it
            break
    return None


def plain(data: bytes) -> Optional[frames.Header]:
    """The header, if this is one whole frame and asks for nothing that is not done here. Raises `FrameError`."""
    header = frames.only(data)
    if header is None or header.get("op") != "exec" or header.get("kind") != "code" or not _PLAIN.issuperset(header):
        return None
    get = header.get
    if get("stream") or get("stdin") or type(get("id")) is not str or type(get("timeout_s")) not in (int, float):
        return None
    for name in ("program", "output_bytes", "output_kill_bytes"):
        if type(get(name)) is not int:
            return None
    return header


def start(box: Box, header: frames.Header, data: bytes, stdio: Stdio, parking: Optional[Parking]) -> Optional[Running]:
    """Have it run. None if it is not so simple: then nothing was done, and whoever it goes to says what is wrong."""
    program = frames.body_of(data)
    work = work_of(header, program, header.get("cwd") or box.config.get("cwd") or "/work")
    if work is None:
        return None
    begun_ns = time.monotonic_ns()
    box.be_ready()
    spare = None if parking is None else parking.take(work)
    if spare is not None:
        return Running(header, program, begun_ns, spare.pid, spare.log, spare.mark, list(spare.ends), [])
    try:
        ends, outs = pipes()
    except OSError:
        return None
    log, mark = OrderLog(), box.marks.next()
    try:
        pid = fork()
    except OSError:
        pid = -1
    if pid == 0:
        runner.start(work, stdio, log, (NULL, *outs))
    for fd in outs if pid > 0 else (*ends, *outs):
        os.close(fd)
    return Running(header, program, begun_ns, pid, log, mark, ends, []) if pid > 0 else None


def work_of(header: frames.Header, program: bytes, cwd: str) -> Optional[Work]:
    """What is to be run, the working directory entered; None if anything is wrong with it."""
    args, env = header.get("args"), header.get("env")
    try:
        os.chdir(cwd)
        work = Work(program, texts(args, "args") if args else (), variables(env) if env else {}, cwd)
    except (OSError, ValueError, TypeError, AttributeError, Refused):
        return None
    return work if len(program) == header["program"] else None


def read_to_the_end(box: Box, running: Running) -> bool:
    """Read both pipes until their ends, and close them. False as soon as anything else is to be done.

    What is in the pipes comes first: on a busy machine a program's words, its end and its death are seen all at once.
    """
    header, ends, left = running.header, running.ends, 2
    most = min(header["output_bytes"], header["output_kill_bytes"], _CHUNK)
    until = running.begun_ns / 1e9 + header["timeout_s"]
    poll = select.poll()
    for fd in (box.connection.sock.fileno(), box.listen().fd, *ends):
        poll.register(fd, _READABLE)
    while left:
        events, took = poll.poll(max(0.0, until - time.monotonic()) * 1000), False
        for fd, _ in events:
            if fd not in ends:
                continue
            number = ends.index(fd)
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                continue  # a guest can open its own pipe, and has emptied it
            took = True
            if data:
                most -= len(data)
                running.printed.append((1 + number, data))
            else:
                poll.unregister(fd)
                os.close(fd)
                ends[number] = -1
                left -= 1
        if most < 0 or not took:
            return False
    return True


def answer(box: Box, running: Running) -> bool:
    """Tell the node, if it has ended well."""
    ending = running.log.ending()
    if ending is None or ending[0] != 0:
        return False
    stdout = stderr = b""
    for number, data in running.printed:
        if number == 1:
            stdout += data
        else:
            stderr += data
    sizes = (len(stdout), len(stderr))
    order = running.log.runs(*sizes) if all(sizes) else [(1 + bool(stderr), sum(sizes))]
    if order is None:
        order = arrival(running.printed)
    times = (box.ready_ns, running.begun_ns)
    header = result(running.header["id"], ("ok", 0, None), sizes, sizes, order if any(sizes) else [], times, ending[1:])
    box.started += 1
    frames.send(box.connection.sock, header, stdout + stderr if stderr else stdout)
    return True


def arrival(printed: Sequence[Tuple[int, bytes]]) -> List[Run]:
    """The order in which it came, where the program's own account does not add up."""
    runs: List[Run] = []
    for number, data in printed:
        runs = appended(runs, number, len(data))
    return runs
