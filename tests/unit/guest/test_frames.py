"""Frames survive any split of the byte stream, and refuse what is too large before holding it."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest import frames

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
headers = st.dictionaries(st.text(max_size=8), plain, max_size=5)


@given(st.lists(st.tuples(headers, st.binary(max_size=200)), min_size=1, max_size=5), st.integers(1, 64))
def test_frames_come_out_as_they_went_in_whatever_the_split(sent: list[frames.Frame], step: int) -> None:
    """A stream has no boundaries of its own; the decoder must find them at any chunking."""
    stream = b"".join(frames.pack(header, body) for header, body in sent)
    decoder, received = frames.Decoder(), []
    for start in range(0, len(stream), step):
        decoder.feed(stream[start : start + step])
        while (frame := decoder.next()) is not None:
            received.append(frame)

    assert received == sent
    assert not decoder.pending()


def test_a_frame_over_its_limit_is_refused_by_its_lengths_alone() -> None:
    """Eight bytes must not make the reader reserve gigabytes."""
    decoder = frames.Decoder(body_limit=100)
    decoder.feed(frames.pack({}, b"x" * 101)[:8])

    with pytest.raises(frames.FrameError, match="exceeds the limit"):
        decoder.next()


@pytest.mark.parametrize("header", [b"[]", b"1", b'"a"', b"{", b"\xff", b"[" * 100_000])
def test_a_header_that_is_no_object_is_refused(header: bytes) -> None:
    """A peer may send anything at all."""
    with pytest.raises(frames.FrameError):
        frames.parse_header(header)


@given(st.binary(max_size=64))
def test_garbage_never_raises_anything_but_a_frame_error(data: bytes) -> None:
    """The node reads what a guest wrote."""
    decoder = frames.Decoder(header_limit=1 << 16, body_limit=1 << 16)
    decoder.feed(data)
    try:
        decoder.next()
    except frames.FrameError:
        pass


def test_descriptors_ride_with_their_frame() -> None:
    """A channel is handed over inside the request that names it."""
    here, there = socket.socketpair()
    reader, writer = os.pipe()
    left, right = frames.Connection(here), frames.Connection(there)
    left.send({"op": "start"}, b"body", [reader])
    os.close(reader)
    header, body, fds = right.receive()
    os.write(writer, b"x")

    assert (header, body, len(fds)) == ({"op": "start"}, b"body", 1)
    assert os.read(fds[0], 1) == b"x"
    for fd in [writer, *fds]:
        os.close(fd)
    left.close()
    right.close()


def test_descriptors_stay_with_their_frame_when_the_kernel_joins_it_to_one_before() -> None:
    """Two messages sent in a row are read at once; the first has none."""
    here, there = socket.socketpair()
    reader, writer = os.pipe()
    left, right = frames.Connection(here), frames.Connection(there)
    left.send({"op": "hello"})
    left.send({"op": "start"}, b"body", [reader, writer])
    left.send({"op": "after"})
    received = [right.receive() for _ in range(3)]

    assert [(header["op"], len(fds)) for header, _, fds in received] == [("hello", 0), ("start", 2), ("after", 0)]
    for fd in [reader, writer, *received[1][2]]:
        os.close(fd)
    left.close()
    right.close()


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 40))
def test_the_decoder_gives_descriptors_to_the_frame_they_were_fed_with(carries: list[bool], step: int) -> None:
    """However the frames before were cut, and however long the frame itself takes to arrive."""
    decoder, received = frames.Decoder(), []
    held = b""
    for number, carrying in enumerate(carries):
        frame = frames.pack({"n": number}, b"x" * number)
        if carrying:  # read with whatever came before it, and nothing after it
            decoder.feed(held + frame[:step], [100 + number])
            held, frame = b"", frame[step:]
        held += frame
    decoder.feed(held)
    while (found := decoder.next()) is not None:
        received.append((found[0]["n"], decoder.fds()))

    assert received == [(number, [100 + number] if carrying else []) for number, carrying in enumerate(carries)]
    assert decoder.unclaimed() == []


def test_the_other_end_closing_is_told_apart_from_a_bad_frame() -> None:
    """A sandbox that died is no protocol error."""
    here, there = socket.socketpair()
    here.sendall(frames.pack({"op": "x"})[:5])
    here.close()
    connection = frames.Connection(there)

    with pytest.raises(frames.Closed):
        connection.receive()
    connection.close()
