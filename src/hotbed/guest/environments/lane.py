"""A lane: one environment's channel, seen from either end.

The channel is a SOCK_SEQPACKET socket pair used as a stream of frames: a frame up to `PACKET` bytes is one packet (one
system call and one wake-up, about a fifth less CPU than a stream socket here), a larger one is cut into packets. The
reader never depends on where the cuts are, so a stream socket would do as well.
"""

from __future__ import annotations

import struct
from typing import Iterator, Optional, Union

from .. import frames
from . import values

PACKET = 64 << 10

_LENGTHS = struct.Struct("!II")


def packets(frame: bytes) -> Iterator[Union[bytes, memoryview]]:
    """A frame as packets to send."""
    if len(frame) <= PACKET:
        yield frame
        return
    view = memoryview(frame)
    for start in range(0, len(frame), PACKET):
        yield view[start : start + PACKET]


class Splitter:
    """Packets in, whole frames out, unread: for whoever only passes them on. Lengths are checked, nothing else is."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, packet: bytes) -> Optional[bytes]:
        """The frame that this packet completes, or None. Raises `FrameError`, also when bytes follow the frame."""
        self._held += packet
        if len(self._held) < _LENGTHS.size:
            return None
        head, body = _LENGTHS.unpack_from(self._held)
        if head > values.FRAME_LIMIT or body > values.FRAME_LIMIT:
            raise frames.FrameError(f"frame of {head}+{body} bytes exceeds the limit of {values.FRAME_LIMIT}")
        size = _LENGTHS.size + head + body
        if len(self._held) > size:
            raise frames.FrameError("bytes follow the frame: one request has one answer")
        if len(self._held) < size:
            return None
        frame, self._held = bytes(self._held), bytearray()
        return frame


class Inbox:
    """Packets in, headers out, with their values restored. Limits hold before anything is kept."""

    def __init__(self) -> None:
        self._decoder = frames.Decoder(header_limit=values.FRAME_LIMIT, body_limit=values.FRAME_LIMIT)
        self._begun = False

    def take(self, packet: bytes) -> Optional[frames.Header]:
        """The header that this packet completes, or None. Raises `FrameError`, also when bytes follow the frame."""
        header = None if self._begun else frames.only(packet)
        return self._take_part(packet) if header is None else values.restore(header, frames.body_of(packet))

    def _take_part(self, packet: bytes) -> Optional[frames.Header]:
        self._decoder.feed(packet)
        frame = self._decoder.next()
        self._begun = frame is None
        if frame is None:
            return None
        if self._decoder.pending():
            raise frames.FrameError("bytes follow the frame: one request has one answer")
        return values.restore(*frame)
