"""Where packets are cut does not matter, and limits hold before anything is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest import frames
from hotbed.guest.environments import lane, values


@given(st.text(max_size=300), st.integers(1, 50))
def test_a_frame_is_found_however_it_was_cut(text: str, step: int) -> None:
    """A relay or a stream socket may cut anywhere."""
    frame, inbox = values.pack({"id": 7, "value": text}), lane.Inbox()
    pieces = [frame[start : start + step] for start in range(0, len(frame), step)]

    headers = [inbox.take(piece) for piece in pieces]

    assert headers[:-1] == [None] * (len(pieces) - 1)
    assert headers[-1] == {"id": 7, "value": text}


def test_packets_are_small_enough_for_a_default_socket_buffer_and_join_to_the_frame() -> None:
    """net.core.wmem_default is 208 KiB; a sequenced packet must fit into it."""
    frame = values.pack({"value": b"x" * (3 * lane.PACKET)})

    pieces = [bytes(packet) for packet in lane.packets(frame)]

    assert b"".join(pieces) == frame
    assert max(map(len, pieces)) == lane.PACKET


def test_bytes_after_the_frame_are_refused() -> None:
    """One request has one answer: a second one, queued ahead, must not be taken for the next request's."""
    with pytest.raises(frames.FrameError, match="one answer"):
        lane.Inbox().take(values.pack({"id": 1}) + values.pack({"id": 2}))


def test_lengths_over_the_limit_are_refused_at_once() -> None:
    """Eight bytes must not make the reader wait for gigabytes."""
    with pytest.raises(frames.FrameError, match="exceeds the limit"):
        lane.Inbox().take(b"\x00\x00\x00\x02\xff\xff\xff\xff")


@given(st.binary(min_size=1, max_size=64))
def test_garbage_never_raises_anything_but_a_frame_error(data: bytes) -> None:
    """A worker may write anything to its lane."""
    inbox = lane.Inbox()
    try:
        inbox.take(data)
    except frames.FrameError:
        pass


@given(st.text(max_size=300), st.integers(1, 50))
def test_a_splitter_passes_frames_on_unread(text: str, step: int) -> None:
    """Whatever they say, and wherever they were cut."""
    frame, splitter = values.pack({"id": 7, "value": text}), lane.Splitter()
    found = [splitter.take(frame[start : start + step]) for start in range(0, len(frame), step)]

    assert found == [None] * (len(found) - 1) + [frame]
    assert splitter.take(b"\0\0\0\0\0\0\0\0") == b"\0" * 8


def test_a_splitter_refuses_by_lengths_and_by_what_follows() -> None:
    """As an inbox does."""
    with pytest.raises(frames.FrameError, match="exceeds the limit"):
        lane.Splitter().take(b"\0\0\0\2\xff\xff\xff\xff")
    with pytest.raises(frames.FrameError, match="one answer"):
        lane.Splitter().take(values.pack({}) * 2)
