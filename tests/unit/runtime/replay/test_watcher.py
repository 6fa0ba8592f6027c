"""Descriptors wake what watches them, and never what watched them before."""

from __future__ import annotations

import os

from hotbed.runtime.replay.watcher import Watcher


def test_what_is_readable_is_called() -> None:
    """The one thing it is for."""
    watcher, heard = Watcher(), list[int]()
    source, sink = os.pipe()
    watcher.watch(source, heard.append)
    os.write(sink, b"x")
    watcher.wait(0)
    watcher.close()
    os.close(sink)

    assert len(heard) == 1


def test_a_released_number_is_not_used_again_within_the_round() -> None:
    """An event of the old descriptor must not reach the new one's watcher: a listener would be waited for in vain."""
    watcher, heard = Watcher(), list[str]()
    pipes = [os.pipe() for _ in range(2)]

    def release_both(_events: int) -> None:
        heard.append("first")
        for source, _ in pipes:
            watcher.release(source)
        extra = os.pipe()
        assert not set(extra) & {source for source, _ in pipes}
        watcher.watch(extra[0], lambda _events: heard.append("stale"))
        os.close(extra[1])

    for source, sink in pipes:
        watcher.watch(source, release_both)
        os.write(sink, b"x")
    watcher.wait(0)
    left = watcher.watched()
    watcher.close()
    for _, sink in pipes:
        os.close(sink)

    assert (heard, left) == (["first"], 1)
