"""The life of pid 1 of a sandbox: warmed in the template, forked from it, serving the node until one of them ends.

It goes the short way (`quiet`) for as long as that will do. There is an agent from the first thing on that asks for
one, and a loop from when something runs beside which the node, or a child, may want something.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Mapping, NoReturn, Optional

from .. import kernel
from ..frames import Closed, FrameError, pack
from . import child, file_ops, hunting, programs, quiet, solo, warming
from .agent import STDIO, Agent, whoami
from .box import Box
from .spare import Spare

_HELLO = pack({"op": "hello"})
_PR_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h


def warm(rounds: int = 30) -> None:
    """For the template: run the way of an exec until it is hot. Before its heap is frozen and its first fork."""
    child.note_signals()
    rehearse(rounds)
    STDIO.install(None)
    warming.rehearse_runner(STDIO, rounds)
    warming.rehearse_forks(STDIO, rounds)


def rehearse(rounds: int) -> None:
    """Serve requests without forking."""

    def make(sock: socket.socket, spare: Spare) -> Agent:
        agent = Agent(Box(sock, 0, {}))
        agent.parking.park(spare)
        return agent

    warming.rehearse_agent(make, STDIO, rounds)


def conceal() -> None:
    """For the template, as the last thing before it serves: hide this package from what will run in its forks."""
    programs.conceal()


def main(sock: socket.socket, ready_ns: int, config: Mapping[str, Any]) -> NoReturn:
    """Serve the node until it closes the socket, then end the sandbox."""
    if "solo" in config:
        solo.run(sock, config, STDIO)
    code = 0
    try:
        if not config.get("spare"):
            wait_for_work(sock, ready_ns)
        if os.getpid() != 1:  # nor was there a template then
            programs.conceal()
            kernel.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        box = Box(sock, ready_ns, config)
        serve(box, parked(box) if config.get("spare") else None)
    finally:
        hunting.end_everything()
        os._exit(code)


def wait_for_work(sock: socket.socket, ready_ns: int) -> None:
    """Return when the node wants more than a hello. Until then, hold nothing that the template does not hold too."""
    while sock.recv(len(_HELLO), socket.MSG_PEEK) == _HELLO:
        sock.recv(len(_HELLO))
        sock.sendall(pack(whoami(ready_ns)))


def parked(box: Box) -> Agent:
    """The agent of a sandbox that is made ahead, and with it what can be started ahead."""
    agent = Agent(box)
    if box.config.get("interpreter"):
        agent.waiter.fill(box.config["interpreter"][0])
    elif box.config.get("python", True):
        agent.parking.fill(lambda: warming.rehearse_runner(STDIO, 1))
        rehearse(1)
    return agent


def serve(box: Box, agent: Optional[Agent] = None) -> None:
    """Serve the node until it is gone or speaks no frames."""
    try:
        if quiet.fits(box.config):
            agent = serve_quietly(box, agent)
        agent = agent or Agent(box)
        box.open()
        box.loop.watch(box.connection.fileno(), agent.serve)
        while True:
            box.loop.turn()
    except FrameError as error:
        file_ops.refuse(box, {}, "bad_request", str(error))
    except (Closed, BlockingIOError, ConnectionError):
        return


def serve_quietly(box: Box, agent: Optional[Agent]) -> Agent:
    """Without a loop for as long as that will do; there is an agent from the first thing on that asks for one."""
    while True:
        running = quiet.serve(box, STDIO, agent.parking if agent is not None else None)
        agent = agent or Agent(box)
        if running is not None:
            agent.take_over(running)
        elif box.connection.buffered():
            agent.serve()
        else:
            return agent  # somebody still lives in here
        if box.opened:
            return agent
