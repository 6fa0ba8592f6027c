"""Judges that may judge again.

A judge costs several times what it takes to judge a candidate, and a trainer's tasks are many. So one that says that
its last job left nothing in its sandbox waits for the next job, for a moment, and only for the same lease and template:
tests are their author's code, and what they may have done to a sandbox concerns nobody else. A judge that cannot say
so, whose channel has ended, or that nobody needs soon ends.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from hotbed.node.grading.host import Host, Running
from hotbed.node.grading.judge import JudgeChannel
from hotbed.node.nursery import Nursery

IDLE_S = 2.0
MOST_JOBS = 100
_SHARE = 8  # at most such a part of the room is held by judges that wait
_DONE_S = 5.0

_Key = tuple[str, str]


@dataclass(slots=True)
class Judge:
    """A judge between its start and its end."""

    running: Running
    channel: JudgeChannel
    jobs: int = 0
    timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """End it, without waiting. Idempotent."""
        self.channel.close()
        self.running.end()


class Judges:
    """Of one node."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._idle: defaultdict[_Key, list[Judge]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))

    async def take(self, host: Host) -> Judge:
        """One for a job under a host's lease: one that waits, or a new one."""
        waiting = self._idle.get(_key(host), [])
        while waiting:
            judge = waiting.pop()
            if judge.timer is not None:
                judge.timer.cancel()
            if not judge.channel.ended:
                host.made.append(judge.running.held)
                return judge
            judge.end()
        running = await host.start("judge")
        return Judge(running, JudgeChannel(running.channel))

    def give_back(self, judge: Judge, host: Host, *, room: int) -> None:
        """Its job is done, but for its word that nothing is left of it. `room` is that of the host's lease."""
        judge.jobs += 1
        most = room // _SHARE
        if host.lease is None or not judge.running.alone or judge.jobs >= MOST_JOBS or most < 1:
            judge.end()
            return
        host.made.remove(judge.running.held)
        self._nursery.start(self._keep(judge, _key(host), most), name="judge-done")

    async def _keep(self, judge: Judge, key: _Key, most: int) -> None:
        frame = await judge.channel.receive(_DONE_S)
        while frame is not None and frame.get("op") == "usage":  # about a candidate that has its verdict
            frame = await judge.channel.receive(_DONE_S)
        waiting = self._idle[key]
        if frame is None or frame.get("op") != "done" or frame.get("clean") is not True or len(waiting) >= most:
            judge.end()
            return
        waiting.append(judge)
        judge.timer = asyncio.get_running_loop().call_later(IDLE_S, self._expire, judge, key)

    def _expire(self, judge: Judge, key: _Key) -> None:
        judge.end()
        waiting = self._idle[key]
        waiting.remove(judge)
        if not waiting:
            del self._idle[key]


def _key(host: Host) -> _Key:
    return host.lease.id if host.lease is not None else "", host.template.digest
