"""One pinned rollout on the supervisor's side: what its processes ask for, and what they are told.

It begins with a channel. Over it a process of the sandbox, before it runs anything of the candidate's, sends the
listener of the filter that it has just put on itself. Then it draws by getrandom, which is the first call to arrive on
that listener, and sends back the first `CHECK_BYTES` of what it saw. Only if those are the bytes of the seed's `check`
stream is it verified. It has closed the channel by then, so a candidate never holds it. Commands that run one after
the other come over one channel, each with a filter of its own; they share clock and streams, as one program's children
would.

A process that ends before it is verified has run nothing, so that is no failure, and no verification either. A rollout
that cannot be kept pinned is *failed*: the node is told, which kills the sandbox, and the listener is closed
(every later call fails with ENOSYS). Nothing runs on unpinned and unnoticed.
"""

from __future__ import annotations

import errno
import logging
import select
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from hotbed.guest import frames
from hotbed.guest.agent import pinned_spawn, pinning
from hotbed.runtime.linux import notify
from hotbed.runtime.linux.memory import Memory
from hotbed.runtime.linux.notify import Call
from hotbed.runtime.replay import calls
from hotbed.runtime.replay.answering import Answers
from hotbed.runtime.replay.exec_patch import ExecPatch
from hotbed.runtime.replay.processes import identify
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import Streams, first_draw
from hotbed.runtime.replay.watcher import OnEvents, Watcher

_log = logging.getLogger(__name__)

CHECK_BYTES = pinning.CHECK_BYTES
_MESSAGE = 64
_FDS_ROOM = socket.CMSG_SPACE(4 * 4)
_FLAGS = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
_FIRST_PID = 2  # of a program in the warm interpreter: the agent is 1
_SERVED = ("getrandom", "urandom", "uuid", "boot_id", "machine_id", "at_random", "vdso_getrandom", "prng")
_GONE = (errno.ESRCH, errno.ENOENT)


class Root:
    """A process that pinned itself, by its listener; its descendants answer to the same one.

    Of a command, it was a thread of the agent that put itself under the filter: the *spawner*. The first that arrives
    after it is the command. `inside` is the number that it told, and the command's once that was met.
    """

    __slots__ = ("begun", "check", "facts", "inside", "listener", "met", "name", "spawner", "verified")

    def __init__(self, listener: int, inside: int, facts: int, *, name: str, check: bytes) -> None:
        self.listener = listener
        self.inside = inside
        self.facts = facts
        self.name = name
        self.check = check
        self.begun = False
        self.met = False
        self.spawner = 0
        self.verified = False

    def has_first_number(self) -> bool:
        """Whether its process number is what the first of its kind has in every sandbox.

        It told its own, and may have ended before it was met. A command that was not met yet has the number after its
        spawner's, where nothing else was ever started.
        """
        if self.facts & pinning.SPAWNS:
            return (self.inside if self.met else self.inside + 1) == pinned_spawn.NUMBER
        return self.inside == _FIRST_PID


class Pin:
    """A pinned rollout from its channel to the end of its last process."""

    def __init__(
        self,
        pin_id: int,
        request: PinRequest | None,
        channel: socket.socket,
        *,
        writer: Memory,
        patch: ExecPatch,
        watcher: Watcher,
        on_change: Callable[[Pin], None],
    ) -> None:
        self.id = pin_id
        self.state = "pending"
        self.ended = False
        self.message = ""
        self._memory, self._patch = writer, patch
        self._watcher = watcher
        self._on_change = on_change
        self._channel: socket.socket | None = channel
        self._roots: list[Root] = []
        self._expected = 1
        self._listeners: set[int] = set()
        self._early: tuple[Root, Call] | None = None
        self._request: PinRequest | None = None
        if request is not None:
            self.seed(request)  # now, while the sandbox's process is on its way
        self.watch(channel.fileno(), lambda _events: self._hear(channel))

    def seed(self, request: PinRequest) -> None:
        """What it is pinned by."""
        self._request, self._expected = request, request.roots
        self._streams = Streams(request.seed)
        self._check = first_draw(self._streams)
        self._answers = Answers(request, self._streams, writer=self._memory, patch=self._patch, watching=self)
        for root in self._roots:
            root.check = self._check
        if self._early is not None:
            self._guard(self._answer, *self._early)

    def watch(self, fd: int, call: OnEvents, events: int = select.EPOLLIN) -> None:
        """Watch for a part of this rollout: whatever goes wrong there is this rollout's failure."""
        self._watcher.watch(fd, partial(self._guard, call), events)

    def release(self, fd: int) -> None:
        """Stop watching and close."""
        self._watcher.release(fd)

    def report(self) -> dict[str, Any]:
        """What the node may know, with all that was said before it asked."""
        self._hear_all()
        return {
            "id": self.id,
            "state": self.state,
            "ended": self.ended,
            "message": self.message,
            "pinned": self._pinned() if self.state in ("ahead", "verified") else [],
            "counts": self._answers.counts() if self._request is not None else {},
        }

    def _hear_all(self) -> None:
        while self._channel is not None and self._hear(self._channel):
            pass

    def fail(self, message: str) -> None:
        """Stop serving it, and say so."""
        if self.state != "failed":
            self.state, self.message = "failed", message
            self._on_change(self)  # first: nothing that runs on without us may be told of before this is
            self.close()

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        self._close_channel()
        while self._listeners:
            self.release(self._listeners.pop())
        if self._request is not None:
            self._answers.close()

    def drop(self) -> None:
        """Nobody wants to hear of it. It is served to its end; one that was never seeded ends now."""
        if self._request is None:
            self.close()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self.release(self._channel.detach())
            self._channel = None

    def _guard(self, call: Callable[..., object], *words: object) -> None:
        try:
            call(*words)
        except Exception as error:  # noqa: BLE001 (boundary: one rollout's trouble must not end the others')
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.exception("pin=%d failed", self.id)
        self.fail(f"{type(error).__name__}: {error}")

    def _hear(self, channel: socket.socket) -> bool:
        """Take one message; whether there was one."""
        try:
            data, ancillary, _, _ = channel.recvmsg(_MESSAGE, _FDS_ROOM, _FLAGS)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data, ancillary = b"", []
        fds = frames.unpack_fds(ancillary)
        last = self._roots[-1] if self._roots else None
        if data and len(fds) == 1 and (last is None or last.verified):
            self._meet(fds[0], *pinning.HELLO.unpack(data))
        elif data and last is not None and last.begun and data == last.check[:CHECK_BYTES]:
            last.verified = True
            self.state = "verified"
            if len(self._roots) == self._expected:
                self._close_channel()
                self._end_if_over()
        elif data and last is not None and last.begun:
            self.fail("the sandbox drew other bytes than the seed implies")
        elif data:
            self.fail("the sandbox drew before it was pinned, or was pinned twice at once")
        else:
            self._close_channel()
            self._end_if_over()
        return True

    def _is_full(self) -> bool:
        return self._request is not None and self._request.level == "full"

    def _meet(self, listener: int, inside: int, facts: int) -> None:
        number = len(self._roots)
        check = b"" if self._request is None else first_draw(self._streams, number) if number else self._check
        root = Root(listener, inside, facts, name=str(number), check=check)
        self._roots.append(root)
        self._listeners.add(listener)
        notify.stay_on_one_cpu(listener)
        self._watcher.watch_listener(listener, partial(self._called, root))
        if self._request is None:
            self.state = "ahead"
            self._on_change(self)
        elif number + 1 == self._expected and self._channel is not None:
            self._watcher.forget(self._channel.fileno())  # what still comes can wait until somebody wants to know

    def _pinned(self) -> list[str]:
        facts = (
            ("aslr", all(root.facts & pinning.ADDRESSES for root in self._roots)),
            ("hash_seed", all(root.facts & pinning.HASHES for root in self._roots)),
            ("pid", self._roots[0].has_first_number()),
            ("clock", self._is_full()),
        )
        return [*_SERVED, *(name for name, holds in facts if holds)]

    def _called(self, root: Root, events: int) -> None:
        """One stopped call, or the end. Most are opens that are nobody's business: they take the short way, here."""
        try:
            call = notify.receive(root.listener) if events & select.EPOLLIN else None
            if call is None:
                self._look_whether_over(root, events)
            elif root.met and self._answers.lets_pass(call):
                notify.proceed(root.listener, call.id)
            elif self._request is None:
                self._early = (root, call)
            else:
                self._answer(root, call)
        except Exception as error:  # noqa: BLE001 (boundary: one rollout's trouble must not end the others')
            self._give_up(error)

    def _look_whether_over(self, root: Root, events: int) -> None:
        if not events & select.EPOLLIN:
            self._listeners.discard(root.listener)
            self.release(root.listener)
            self._hear_all()
            self._end_if_over()

    def _answer(self, root: Root, call: Call) -> None:
        try:
            if root.met:
                self._answers.answer(root.listener, call)
            elif root.begun:
                self._meet_command(root, call)
            else:
                self._begin(root, call)
        except OSError as error:
            if error.errno == errno.EFAULT:
                notify.refuse(root.listener, call.id, errno.EFAULT)
            elif error.errno not in _GONE:
                self.fail(f"call {call.number} could not be answered: {error}")

    def _end_if_over(self) -> None:
        """Whether the last process under a filter is gone, and none can follow."""
        if not self._listeners and self._channel is None and self.state != "failed":
            self.ended = True
            if self.state != "ahead" or self._request is None:
                self._on_change(self)
            self.close()

    def _begin(self, root: Root, call: Call) -> None:
        """The first draw, by the process that has just put itself under the filter."""
        if call.number != calls.GETRANDOM:
            raise ValueError(f"call {call.number} came before the first draw")
        root.begun = True
        clocks = self._is_full() and not root.facts & pinning.SPAWNS  # the agent's clock stays real
        self._answers.give(call, root.check, patched=bool(root.facts & pinning.VDSO) or clocks)
        notify.answer(root.listener, call.id, len(root.check))
        if root.facts & pinning.SPAWNS:
            root.spawner = call.tid
        else:
            self._answers.meet(call.tid, root.inside, root.name)  # it goes on meanwhile
            root.met = True

    def _meet_command(self, root: Root, call: Call) -> None:
        """A call under a filter that nobody but its spawner was under: the command's first, or the spawner waits."""
        if call.tid == root.spawner:
            notify.proceed(root.listener, call.id)
            return
        found = identify(call.tid)
        root.inside, root.met = found.inside, True
        self._answers.meet(found.pid, found.inside, root.name)
        self._answers.answer(root.listener, call)
