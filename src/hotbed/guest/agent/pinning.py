"""How a process of a sandbox becomes reproducible, before it runs anything of the candidate's.

The node sent, with the request, one end of a channel to the supervisor that answers for this rollout. The process puts
a filter with a listener on itself, hands the listener over, and draws the first bytes: they come from the supervisor,
or the draw fails. It sends back the part that the supervisor checks and closes the channel; one that was pinned before
there was a seed gives it to the agent instead, for the node to check. Everything that it starts later inherits the
filter; nothing can take it off.

The order matters: its own copy of the listener is closed *before* the first draw. If the supervisor dies, every
listener is gone and the draw fails with ENOSYS; with a copy left open it would wait for itself for ever.

What is the same for all forks of a template is made there, with the `Pinning`, so that a fork does not pay for it: the
first touch of anything after a fork costs a page fault.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from typing import Callable, Sequence, Tuple

from .. import kernel
from . import loader, pinfilter

CHECK_BYTES = 32
ENTROPY_BYTES = 32
# Facts: no address space randomization; the interpreter's hash seed was given to it; its C library asks the vDSO first;
# a thread of the agent says this, and what it starts is what is pinned.
ADDRESSES, HASHES, VDSO, SPAWNS = 1, 2, 4, 8
_ASKS_VDSO = (2, 41)  # the first glibc that does
HELLO = struct.Struct("IB")  # what comes with the listener: the thread's own number, and the facts
_NR_GETRANDOM = 318
_NR_PERSONALITY = 135
_NO_RANDOMIZATION = 0x0040000  # ADDR_NO_RANDOMIZE
_QUERY = 0xFFFFFFFF
_SET_MODE_FILTER = 1
_NEW_LISTENER = 8
_WAIT_KILLABLE = 32  # Linux 5.19: a signal must not make a call that was already answered start again


_install = kernel.call  # by a name of its own, so that a rehearsal can leave this step out (see `warming`)


class NotPinned(Exception):
    """The process could not be made reproducible, so it must not run."""


class Filter:
    """A filter as the kernel takes it, kept at one address."""

    def __init__(self, level: str, passing: Sequence[loader.Site] = ()) -> None:
        program = pinfilter.build(level, passing)
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._prog = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(self._buffer))  # struct sock_fprog
        self._flags = _NEW_LISTENER | _WAIT_KILLABLE

    def install(self) -> int:
        """Put it on this thread for good; the listener's descriptor."""
        try:
            return _install(kernel.NR_SECCOMP, _SET_MODE_FILTER, self._flags, self._prog)
        except OSError as error:
            if error.errno != errno.EINVAL or self._flags == _NEW_LISTENER:
                raise
            self._flags = _NEW_LISTENER
            return self.install()


class Pinning:
    """Pins forks of this process."""

    def __init__(self) -> None:
        self._facts = 0 if sys.flags.hash_randomization else HASHES
        if asks_vdso(platform.libc_ver()):
            self._facts |= VDSO
        if kernel.SUPPORTED and kernel.call(_NR_PERSONALITY, _QUERY) & _NO_RANDOMIZATION:
            self._facts |= ADDRESSES
        passing = loader.sites() if self._facts & ADDRESSES else ()
        self._filters = {level: Filter(level, passing) for level in ("rng", "full")}

    def enter(self, channel: socket.socket, level: str, *, spawns: bool = False) -> bytes:
        """Pin the calling thread, and what it starts; a seed for its generators. Raises `NotPinned`.

        Takes ownership of the channel. A process has one thread then, or `spawns`: it will start what is to be pinned.
        """
        with channel:
            self._put_on(channel, level, spawns=spawns)
            check, entropy = _draw(os.getrandom)
            try:
                channel.send(check)
            except OSError as error:
                raise NotPinned(str(error)) from None
        return entropy

    def wait(self, channel: socket.socket, *, spawns: bool = False) -> Tuple[bytes, bytes]:
        """Be pinned at level `rng` before there is a seed, and wait for it; what shows that it came, and the same seed.

        Takes ownership of the channel. Raises `NotPinned`, also when nobody will say any more. One that `spawns` lets
        other threads go on meanwhile.
        """
        with channel:
            self._put_on(channel, "rng", spawns=spawns)
        return _draw(_beside_others if spawns else os.getrandom)

    def _put_on(self, channel: socket.socket, level: str, *, spawns: bool = False) -> None:
        if not kernel.SUPPORTED:
            raise NotPinned("replay is not made for this architecture")
        facts = self._facts
        try:
            if not facts & ADDRESSES:  # what it will exec at least; its own layout stays its template's
                kernel.call(_NR_PERSONALITY, _NO_RANDOMIZATION)
                facts |= ADDRESSES
            if spawns:
                facts = facts & ~VDSO | SPAWNS
            listener = self._filters[level].install()
            try:
                socket.send_fds(channel, [HELLO.pack(_thread.get_native_id(), facts)], [listener])
            finally:
                os.close(listener)
        except OSError as error:
            raise NotPinned(str(error)) from None


def _draw(getrandom: Callable[[int], bytes]) -> Tuple[bytes, bytes]:
    try:
        drawn = getrandom(CHECK_BYTES + ENTROPY_BYTES)
    except OSError as error:
        raise NotPinned(str(error)) from None
    return drawn[:CHECK_BYTES], drawn[CHECK_BYTES:]


def _beside_others(size: int) -> bytes:
    """`os.getrandom` without the interpreter's lock, which that keeps."""
    drawn = ctypes.create_string_buffer(size)
    kernel.call(_NR_GETRANDOM, ctypes.addressof(drawn), size, 0)
    return drawn.raw


def asks_vdso(libc: Tuple[str, str]) -> bool:
    """Whether getrandom of this C library may be answered without a system call. In doubt it may."""
    name, version = libc
    try:
        return name != "glibc" or tuple(map(int, version.split(".")[:2])) >= _ASKS_VDSO
    except ValueError:
        return True
