"""The keeper: a process with one thread that stops, copies and refills environments, and holds what it took.

It is forked from the launcher, so the node's event loop never waits for a process that is being stopped, and it ends
with its channel. Whatever it holds stopped at that moment is killed by the kernel (PTRACE_O_EXITKILL): a process is
never left half changed. It runs nothing of any sandbox, reads their memory as bytes, and gives nobody any right.

Node to keeper (SEQPACKET, JSON, one pidfd by SCM_RIGHTS where a process is meant), each with a `key`:
    witness  {template} + fd                    the fork that never runs, of a template
    stop     {box, template} + fd               stop an environment that is idle
    take     {box, template, snapshot, skip, verify} -> {size, skipped, number, files}
    go       {box}                              let it run on
    look     {box, template} + fd               look at a vessel that is parked, so that its restore has less to do
    restore  {box, snapshot, verify} + fd       make a vessel what the snapshot was taken of
    forget   {snapshot} | {template} | {box}
Keeper to node: {key, ...} or {key, error: "unsupported" | "busy" | "lost", message, names}.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from hotbed.guest import frames
from hotbed.runtime.livefork import capture, facts, loading, pages
from hotbed.runtime.livefork.capture import Capture, Unsupported
from hotbed.runtime.livefork.loading import Mismatch, Newborn
from hotbed.runtime.livefork.tracee import Busy, Lost, Tracee, stop_idle
from hotbed.runtime.livefork.witness import Witness

MESSAGE_LIMIT = 1 << 16
LANE = 3
_FDS_ROOM = socket.CMSG_SPACE(4 * 4)
_PATIENCE_S = 0.25
_OVERDUE_S = 60.0

log = logging.getLogger(__name__)

Message = dict[str, Any]


class Keeper:
    """Serves one channel."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._witnesses: dict[int, Witness] = {}
        self._stopped: dict[int, Tracee] = {}
        self._obstacles: dict[int, list[str]] = {}
        self._captures: dict[int, Capture] = {}
        self._newborns: dict[int, Newborn] = {}
        self._places = pages.places_are_visible()
        self._ops: dict[str, Callable[[Message, int], Message]] = {
            "witness": self._witness,
            "stop": self._stop,
            "take": self._take,
            "go": self._go,
            "look": self._look,
            "restore": self._restore,
            "forget": self._forget,
        }

    def serve(self) -> NoReturn:
        """Until the node is gone."""
        signal.signal(signal.SIGALRM, _overdue)
        while True:
            data, ancillary, _, _ = self._channel.recvmsg(MESSAGE_LIMIT, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
            if not data:
                os._exit(0)
            fds = frames.unpack_fds(ancillary)
            try:
                message = json.loads(data)
                answer = self._answer(message, _pid_of(fds[0]) if fds else 0)
                self._channel.send(json.dumps({"key": message["key"], **answer}).encode())
            finally:
                for fd in fds:
                    os.close(fd)

    def _answer(self, message: Message, pid: int) -> Message:
        signal.setitimer(signal.ITIMER_REAL, _OVERDUE_S)
        try:
            return self._ops[message["op"]](message, pid)
        except Unsupported as error:
            return {"error": "unsupported", "message": str(error), "names": error.names}
        except Busy as error:
            return {"error": "busy", "message": str(error)}
        except (Lost, Mismatch, OSError) as error:
            return {"error": "lost", "message": str(error)}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _witness(self, message: Message, pid: int) -> Message:
        if message["template"] not in self._witnesses:
            self._witnesses[message["template"]] = Witness(pid, trust_places=self._places)
        return {"size": self._witnesses[message["template"]].image.size}

    def _stop(self, message: Message, pid: int) -> Message:
        if pid == 0:
            raise Lost("it has ended")
        tracee = stop_idle(pid, LANE, patience_s=_PATIENCE_S)
        try:
            tracee.begin()
        except Busy:
            tracee.detach()
            raise
        except OSError:
            tracee.kill()
            raise
        self._stopped[message["box"]] = tracee
        filters = (
            int(facts.status(self._witnesses[message["template"]].pid)["Seccomp_filters"]) + 1
        )  # the sandbox's own
        self._obstacles[message["box"]] = facts.obstacles(pid, facts.status(pid), filters)  # the agent forks soon
        return {}

    def _take(self, message: Message, _pid: int) -> Message:
        tracee, witness = self._stopped[message["box"]], self._witnesses[message["template"]]
        obstacles = self._obstacles[message["box"]]
        taken = capture.take(tracee, witness, obstacles, skip=message["skip"], verify=message["verify"])
        self._captures[message["snapshot"]] = taken
        return {"size": taken.image.size, "skipped": taken.skipped, "number": taken.number, "files": taken.needs_files}

    def _go(self, message: Message, _pid: int) -> Message:
        tracee = self._stopped.pop(message["box"])
        del self._obstacles[message["box"]]
        try:
            tracee.release()
        except OSError as error:
            tracee.kill()
            raise Lost(str(error)) from None
        return {}

    def _look(self, message: Message, pid: int) -> Message:
        if pid == 0:
            raise Lost("it has ended")
        vessel = stop_idle(pid, LANE, patience_s=_PATIENCE_S)
        try:
            self._newborns[message["box"]] = Newborn.of(vessel, self._witnesses[message["template"]])
        finally:
            vessel.detach()
        return {}

    def _restore(self, message: Message, pid: int) -> Message:
        taken, known = self._captures.get(message["snapshot"]), self._newborns.pop(message["box"], None)
        if taken is None or pid == 0:
            raise Lost("the snapshot is gone" if taken is None else "the vessel has ended")
        with stop_idle(pid, LANE, patience_s=_OVERDUE_S / 4) as vessel:
            if known is not None and not known.holds(vessel):
                known = None
            vessel.begin()
            return loading.load(vessel, taken, known, verify=message["verify"])

    def _forget(self, message: Message, _pid: int) -> Message:
        taken = self._captures.pop(message.get("snapshot", -1), None)
        if taken is not None:
            taken.image.close()
        witness = self._witnesses.pop(message.get("template", -1), None)
        if witness is not None:
            witness.close()
        self._newborns.pop(message.get("box", -1), None)
        return {}


def _pid_of(pidfd: int) -> int:
    """The process that a pidfd stands for, as we number it; 0 if it has ended or is not one of those below us."""
    lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    return max(0, int(found.get("Pid", "0")))


def _overdue(_number: int, _frame: object) -> None:
    raise Lost("it took too long")


def run(channel: socket.socket) -> NoReturn:
    """Serve until the channel ends. Needs a process of its own."""
    try:
        Keeper(channel).serve()
    finally:
        os._exit(0)
