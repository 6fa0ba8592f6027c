"""Descriptors wake what watches them, and never what watched them before."""

from __future__ import annotations

import os
from functools import partial

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


class Pipes:
    """Pipes that a watcher has as listeners; each call takes the byte that made it, as answering a call does."""

    def __init__(self, watcher: Watcher, count: int) -> None:
        self.heard: list[int] = []
        self.ends = [os.pipe() for _ in range(count)]
        for number, (source, _) in enumerate(self.ends):
            watcher.watch_listener(source, partial(self._take, number))

    def _take(self, number: int, _events: int) -> None:
        os.read(self.ends[number][0], 1)
        self.heard.append(number)

    def wake(self, number: int) -> None:
        """Have something to say on one."""
        os.write(self.ends[number][1], b"x")

    def close(self) -> None:
        """Close the ends that the watcher does not own."""
        for _, sink in self.ends:
            os.close(sink)


def test_a_listener_that_comes_near_is_heard_once_for_each_call_and_so_are_the_others() -> None:
    """Wherever each is waited for, and whichever was near before."""
    watcher = Watcher()
    pipes = Pipes(watcher, 2)
    for number in (0, 0, 1, 1, 0):
        pipes.wake(number)
        watcher.wait(0)
    pipes.wake(0)
    pipes.wake(1)
    watcher.wait(0)
    watcher.wait(0)
    watcher.close()
    pipes.close()

    assert pipes.heard[:5] == [0, 0, 1, 1, 0] and sorted(pipes.heard[5:]) == [0, 1]


def test_the_near_one_can_be_released_and_its_number_be_watched_again() -> None:
    """A rollout ends, and the next one's listener has its number."""
    watcher = Watcher()
    pipes = Pipes(watcher, 1)
    for _ in range(2):
        pipes.wake(0)
        watcher.wait(0)
    first = pipes.ends[0][0]
    watcher.release(first)
    watcher.wait(0)
    again = Pipes(watcher, 1)
    again.wake(0)
    watcher.wait(0)
    watcher.close()
    pipes.close()
    again.close()

    assert (pipes.heard, again.heard, again.ends[0][0]) == ([0, 0], [0], first)


def test_what_comes_near_is_the_listener_that_was_alone() -> None:
    """Where several ask at once nothing is gained by it, and it costs."""
    watcher = Watcher()
    pipes = Pipes(watcher, 2)
    pipes.wake(0)
    pipes.wake(1)
    watcher.wait(0)
    together = watcher.near
    pipes.wake(1)
    watcher.wait(0)
    alone = watcher.near
    watcher.close()
    pipes.close()

    assert (together, alone) == (-1, pipes.ends[1][0])
