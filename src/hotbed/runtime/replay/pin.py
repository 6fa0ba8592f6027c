"""One pinned rollout on the supervisor's side: what its processes ask for, and what they are told.

It begins with a channel. Over it the sandbox's first process, before it runs anything of the candidate's, sends the
listener of the filter that it has just put on itself. Then it draws by getrandom, which is the first call to arrive on
that listener, and sends back the first `CHECK_BYTES` of what it saw. Only if those are the bytes of the seed's `check`
stream is the rollout verified. The channel is closed by then, so a candidate never holds it.

A rollout that cannot be kept pinned is *failed*: the node is told, which kills the sandbox, and the listener is closed
(every later call fails with ENOSYS). Nothing runs on unpinned and unnoticed.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

from hotbed.guest import frames, pinning
from hotbed.runtime.linux import notify
from hotbed.runtime.linux.memory import Memory
from hotbed.runtime.linux.notify import Call
from hotbed.runtime.replay import calls
from hotbed.runtime.replay.clock import Clock
from hotbed.runtime.replay.devices import AT_FDCWD, PATH_LIMIT, READ_LIMIT, Devices, recognize
from hotbed.runtime.replay.exec_patch import ExecPatch
from hotbed.runtime.replay.processes import Processes
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import Streams
from hotbed.runtime.replay.timing import Timing, signed
from hotbed.runtime.replay.watcher import OnEvents, Watching

_log = logging.getLogger(__name__)

CHECK_BYTES, ENTROPY_BYTES = pinning.CHECK_BYTES, pinning.ENTROPY_BYTES
DRAW_LIMIT = 1 << 20
_MESSAGE = 64
_FIRST_PID = 2  # the agent is 1
_SERVED = ("getrandom", "urandom", "uuid", "boot_id", "machine_id", "at_random", "vdso_getrandom", "prng")
_GETRANDOM_FLAGS = 7  # GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE
_GONE = (errno.ESRCH, errno.ENOENT)
_OPENS = {calls.OPEN: (None, 0, 1), calls.OPENAT: (0, 1, 2), calls.OPENAT2: (0, 1, None)}
_FORKS = (calls.CLONE, calls.FORK, calls.VFORK)
_NOTED = {
    calls.GETRANDOM: "draws",
    calls.ARCH_PRCTL: "execs",
    calls.READ: "reads",
    **dict.fromkeys(_OPENS, "opens"),
    **dict.fromkeys(_FORKS, "forks"),
}


class Pin:
    """A pinned rollout from its channel to the end of its last process."""

    def __init__(
        self,
        pin_id: int,
        request: PinRequest,
        channel: socket.socket,
        *,
        writer: Memory,
        patch: ExecPatch,
        watching: Watching,
        on_change: Callable[[Pin], None],
    ) -> None:
        self.id = pin_id
        self.level = request.level
        self.state = "pending"
        self.ended = False
        self.message = ""
        self.pinned: list[str] = []
        self.counts: Counter[str] = Counter()
        self._memory = writer
        self._patch = patch
        self._watching = watching
        self._on_change = on_change
        self._channel: socket.socket | None = channel
        self._listener = -1
        self._begun = False
        self._first, self._facts = 0, 0
        streams = Streams(request.seed)
        self._check = streams.stream("check").take(CHECK_BYTES + ENTROPY_BYTES)
        self._processes = Processes(streams, self)
        self._devices = Devices(streams, self)
        self._timing = Timing(Clock(request.epoch_ns, request.step_ns), writer) if request.level == "full" else None
        self.watch(channel.fileno(), lambda _events: self._hear(channel))

    def watch(self, fd: int, call: OnEvents, events: int = select.EPOLLIN) -> None:
        """Watch for a part of this rollout: whatever goes wrong there is this rollout's failure."""
        self._watching.watch(fd, lambda found: self._guard(call, found), events)

    def release(self, fd: int) -> None:
        """Stop watching and close."""
        self._watching.release(fd)

    def report(self) -> dict[str, Any]:
        """What the node may know."""
        return {
            "id": self.id,
            "state": self.state,
            "ended": self.ended,
            "message": self.message,
            "pinned": self.pinned,
            "counts": dict(self.counts),
        }

    def fail(self, message: str) -> None:
        """Stop serving it, and say so."""
        if self.state != "failed":
            self.state, self.message = "failed", message
            self._on_change(self)  # first: nothing that runs on without us may be told of before this is
            self.close()

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        self._close_channel()
        if self._listener >= 0:
            self.release(self._listener)
            self._listener = -1
        self._devices.close()
        self._processes.close()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self.release(self._channel.detach())
            self._channel = None

    def _guard(self, call: OnEvents, events: int) -> None:
        try:
            call(events)
        except Exception as error:  # noqa: BLE001 (boundary: one rollout's trouble must not end the others')
            _log.exception("pin=%d failed", self.id)
            self.fail(f"{type(error).__name__}: {error}")

    def _hear(self, channel: socket.socket) -> None:
        try:
            data, ancillary, _, _ = channel.recvmsg(_MESSAGE, socket.CMSG_SPACE(4 * 4), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            data, ancillary = b"", []
        fds = frames.unpack_fds(ancillary)
        if self._listener < 0 and len(fds) == 1:
            self._listener = fds[0]
            self._first, self._facts = pinning.HELLO.unpack(data)
            notify.stay_on_one_cpu(self._listener)
            self.watch(self._listener, self._called)
        elif data:
            self._compare(data)
        else:
            self.fail("the sandbox's process ended before it was pinned")

    def _compare(self, data: bytes) -> None:
        if not self._begun or data != self._check[:CHECK_BYTES]:
            self.fail("the sandbox drew other bytes than the seed implies")
            return
        self.state = "verified"
        self.pinned = [*_SERVED, *(name for name, holds in self._named() if holds)]
        self._close_channel()
        self._on_change(self)

    def _named(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("aslr", bool(self._facts & pinning.ADDRESSES)),
            ("hash_seed", bool(self._facts & pinning.HASHES)),
            ("pid", self._first == _FIRST_PID),
            ("clock", self._timing is not None),
        )

    def _called(self, events: int) -> None:
        if not events & select.EPOLLIN:
            self._end()
            return
        call = notify.receive(self._listener)
        if call is None:
            return
        try:
            self._answer(call)
        except OSError as error:
            if error.errno == errno.EFAULT:
                notify.refuse(self._listener, call.id, errno.EFAULT)
            elif error.errno not in _GONE:
                self.fail(f"call {call.number} could not be answered: {error}")

    def _end(self) -> None:
        """The last process under the filter is gone."""
        if self._channel is not None:
            self._hear(self._channel)  # what it said is waiting to be read
        if self.state != "failed":
            self.ended = True
            self.close()
            self._on_change(self)

    def _answer(self, call: Call) -> None:
        number = call.number
        self.counts[_NOTED.get(number, "clock")] += 1
        if number == calls.GETRANDOM:
            self._getrandom(call)
        elif number == calls.ARCH_PRCTL:
            self._patch.pin(call.tid, self.level, self._processes.of(call.tid).random.take(16))
            notify.proceed(self._listener, call.id)
        elif number in _OPENS:
            self._open(call)
        elif number in _FORKS:
            self._processes.forking(call.tid)
            notify.proceed(self._listener, call.id)
        elif number == calls.READ:
            self._read(call)
        elif self._timing is not None:
            self._finish(call, self._timing.handle(call))

    def _finish(self, call: Call, value: int | None) -> None:
        if value is None:
            notify.proceed(self._listener, call.id)
        else:
            notify.answer(self._listener, call.id, value)

    def _getrandom(self, call: Call) -> None:
        address, size, flags = call.arguments[:3]
        if not self._begun:
            self._begin(call)
        elif flags & ~_GETRANDOM_FLAGS or flags & 6 == 6:
            notify.proceed(self._listener, call.id)  # the kernel refuses it
        else:
            size = min(size, DRAW_LIMIT)
            self._memory.write(call.tid, address, self._processes.of(call.tid).random.take(size))
            notify.answer(self._listener, call.id, size)

    def _begin(self, call: Call) -> None:
        """The first draw, by the process that has just put itself under the filter."""
        self._begun = True
        self._patch.pin(call.tid, self.level, None)
        self._memory.write(call.tid, call.arguments[0], self._check)
        self._processes.begin(call.tid, self._first)
        notify.answer(self._listener, call.id, len(self._check))

    def _open(self, call: Call) -> None:
        directory, path, flags = _OPENS[call.number]
        written = self._memory.read_text(call.tid, call.arguments[path], PATH_LIMIT)
        at = AT_FDCWD if directory is None else signed(call.arguments[directory])
        known = recognize(call.tid, at, written)
        if known is None:
            notify.proceed(self._listener, call.id)
            return
        fd = self._devices.open(self._processes.of(call.tid), known)
        try:
            wanted = call.arguments[flags] if flags is not None else os.O_CLOEXEC
            notify.give_fd(self._listener, call.id, fd, close_on_exec=bool(wanted & os.O_CLOEXEC))
        finally:
            os.close(fd)

    def _read(self, call: Call) -> None:
        source = self._devices.behind(call.tid, call.arguments[0])
        if source is None:
            notify.proceed(self._listener, call.id)
            return
        data = source.take(min(call.arguments[2], READ_LIMIT))
        self._memory.write(call.tid, call.arguments[1], data)
        notify.answer(self._listener, call.id, len(data))
