"""What a pinned process is told when it draws, opens, reads, execs, or looks at the clock."""

from __future__ import annotations

import os
from collections import Counter, defaultdict

from hotbed.runtime.linux import notify
from hotbed.runtime.linux.memory import Memory
from hotbed.runtime.linux.notify import Call
from hotbed.runtime.replay import calls
from hotbed.runtime.replay.clock import Clock
from hotbed.runtime.replay.devices import AT_FDCWD, ENDINGS, PATH_LIMIT, READ_LIMIT, Devices, recognize
from hotbed.runtime.replay.exec_patch import ExecPatch
from hotbed.runtime.replay.processes import Processes
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import Streams
from hotbed.runtime.replay.timing import Timing, signed
from hotbed.runtime.replay.watcher import Watching

DRAW_LIMIT = 1 << 20
_GETRANDOM_FLAGS = 7  # GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE
_OPENS = {calls.OPEN: (None, 0, 1), calls.OPENAT: (0, 1, 2), calls.OPENAT2: (0, 1, None)}
_PATHS = {number: path for number, (_, path, _) in _OPENS.items()}
_NOTED = {
    calls.GETRANDOM: "draws",
    calls.ARCH_PRCTL: "execs",
    calls.READ: "reads",
    **dict.fromkeys(_OPENS, "opens"),
    calls.SET_ROBUST_LIST: "births",
}


class Answers:
    """The answers of one rollout: its streams, its processes, what they have open, and its time."""

    def __init__(
        self, request: PinRequest, streams: Streams, *, writer: Memory, patch: ExecPatch, watching: Watching
    ) -> None:
        self._calls: defaultdict[int, int] = defaultdict(int)  # by number
        self._level = request.level
        self._memory = writer
        self._patch = patch
        self._processes = Processes(streams, watching)
        self._devices = Devices(streams, watching)
        self._timing = Timing(Clock(request.epoch_ns, request.step_ns), writer) if request.level == "full" else None

    def counts(self) -> dict[str, int]:
        """How many calls of each kind were answered."""
        counts: Counter[str] = Counter()
        for number, count in self._calls.items():
            counts[_NOTED.get(number, "clock")] += count
        return dict(counts)

    def give(self, call: Call, data: bytes, *, patched: bool) -> None:
        """Put the bytes of a first draw where they were asked for, into a process whose vDSO may need a patch."""
        if patched:
            self._patch.pin(call.tid, self._level)
        self._memory.write(call.tid, call.arguments[0], data)

    def meet(self, tid: int, inside: int, name: str) -> None:
        """A process that pinned itself is the first of its family."""
        self._processes.begin(tid, inside, name)

    def close(self) -> None:
        """Forget the processes, close what they have open. Idempotent."""
        self._devices.close()
        self._processes.close()

    def lets_pass(self, call: Call) -> bool:
        """Whether it is an open of no file that we answer for, as nearly all calls are. In doubt it is not."""
        path = _PATHS.get(call.number)
        if path is None:
            return False
        written = self._memory.peek(call.tid, call.arguments[path], PATH_LIMIT)
        if written is None or written.endswith(ENDINGS):
            return False
        self._calls[call.number] += 1
        return True

    def answer(self, listener: int, call: Call) -> None:
        """Answer one stopped call. Raises `OSError`: EFAULT when it is the caller's fault, ESRCH when it is gone."""
        number = call.number
        self._calls[number] += 1
        if number in _OPENS:
            self._open(listener, call)
        elif number == calls.GETRANDOM:
            self._finish(listener, call, self._getrandom(call))
        elif number == calls.ARCH_PRCTL:
            self._patch.pin(call.tid, self._level, self._processes.of(call.tid).random.take(16))
            notify.proceed(listener, call.id)
        elif number == calls.SET_ROBUST_LIST:
            self._processes.of(call.tid)
            notify.proceed(listener, call.id)
        elif number == calls.READ:
            self._finish(listener, call, self._read(call))
        elif self._timing is not None:
            self._finish(listener, call, self._timing.handle(call))

    def _finish(self, listener: int, call: Call, value: int | None) -> None:
        if value is None:
            notify.proceed(listener, call.id)
        else:
            notify.answer(listener, call.id, value)

    def _getrandom(self, call: Call) -> int | None:
        address, size, flags = call.arguments[:3]
        if flags & ~_GETRANDOM_FLAGS or flags & 6 == 6:
            return None  # the kernel refuses it
        size = min(size, DRAW_LIMIT)
        self._memory.write(call.tid, address, self._processes.of(call.tid).random.take(size))
        return size

    def _open(self, listener: int, call: Call) -> None:
        directory, path, flags = _OPENS[call.number]
        written = self._memory.read_text(call.tid, call.arguments[path], PATH_LIMIT)
        at = AT_FDCWD if directory is None else signed(call.arguments[directory])
        known = recognize(call.tid, at, written)
        if known is None:
            notify.proceed(listener, call.id)
            return
        fd = self._devices.open(self._processes.of(call.tid), known)
        try:
            wanted = call.arguments[flags] if flags is not None else os.O_CLOEXEC
            notify.give_fd(listener, call.id, fd, close_on_exec=bool(wanted & os.O_CLOEXEC))
        finally:
            os.close(fd)

    def _read(self, call: Call) -> int | None:
        source = self._devices.behind(call.tid, call.arguments[0])
        if source is None:
            return None
        data = source.take(min(call.arguments[2], READ_LIMIT))
        self._memory.write(call.tid, call.arguments[1], data)
        return len(data)
