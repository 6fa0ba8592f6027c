"""seccomp user notification: system calls of one process answered by another (man 2 seccomp_unotify).

A filter that was installed with a listener stops the calls it names; whoever holds the listener receives each of them,
and answers with a value, an error, a descriptor, or by letting the call go on. This is no security boundary: the
caller's memory may change between the look and the call. When the last holder of the listener closes it, every stopped
call, and every later one, fails with ENOSYS.
"""

from __future__ import annotations

import errno
import fcntl
import struct
from typing import NamedTuple

_RECEIVE = 0xC0502100
_ANSWER = 0xC0182101
_GIVE_FD = 0x40182103
_SET_FLAGS = 0x40082104
_SYNC_WAKE_UP = 1  # Linux 6.6
_PROCEED = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_GIVE_AND_ANSWER = 2  # SECCOMP_ADDFD_FLAG_SEND, Linux 5.14
_CLOEXEC = 0o2000000

_NOTIFICATION = struct.Struct("=QI4xi12x6Q")  # struct seccomp_notif without flags, architecture and instruction
_RESPONSE = struct.Struct("=QqiI")
_ADD_FD = struct.Struct("=QIIII")
_EMPTY = bytes(_NOTIFICATION.size)


class Call(NamedTuple):
    """A stopped system call. `tid` is the calling thread as the receiver's pid namespace numbers it."""

    id: int
    tid: int
    number: int
    arguments: tuple[int, ...]


def stay_on_one_cpu(listener: int) -> None:
    """Wake the receiver on the CPU where the caller stops, and back: a fifth of the cost of crossing CPUs."""
    try:
        fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
    except OSError:
        pass  # an older kernel: slower, not different


def receive(listener: int) -> Call | None:
    """The next stopped call; None if its process died before it was looked at. Waits unless poll said readable."""
    try:
        data = fcntl.ioctl(listener, _RECEIVE, _EMPTY)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    words = _NOTIFICATION.unpack(data)
    return Call(words[0], words[1], words[2], words[3:])


def answer(listener: int, call_id: int, value: int) -> None:
    """The call returns a value."""
    _respond(listener, _RESPONSE.pack(call_id, value, 0, 0))


def refuse(listener: int, call_id: int, code: int) -> None:
    """The call fails with an errno."""
    _respond(listener, _RESPONSE.pack(call_id, 0, -code, 0))


def proceed(listener: int, call_id: int) -> None:
    """The call goes on to the kernel as if nobody had looked."""
    _respond(listener, _RESPONSE.pack(call_id, 0, 0, _PROCEED))


def give_fd(listener: int, call_id: int, fd: int, *, close_on_exec: bool) -> None:
    """The call returns a new descriptor of the caller's for what `fd` is open on."""
    flags = _CLOEXEC if close_on_exec else 0
    try:
        fcntl.ioctl(listener, _GIVE_FD, _ADD_FD.pack(call_id, _GIVE_AND_ANSWER, fd, 0, flags))
    except OSError as error:
        if error.errno != errno.ENOENT:
            refuse(listener, call_id, error.errno or errno.EIO)  # the caller's own limit, mostly (EMFILE)


def _respond(listener: int, response: bytes) -> None:
    try:
        fcntl.ioctl(listener, _ANSWER, response)
    except OSError as error:
        if error.errno != errno.ENOENT:  # ENOENT: the caller was killed meanwhile
            raise
