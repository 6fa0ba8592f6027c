"""A fork of a template on its way to an agent: shut in, with nothing of the template's, and its settings put together.

What a fork does here costs it a page for each object that it touches first, and what the template has not rehearsed
costs it more. So `Newborn.prepare` is run in the template, too, but for the steps that nothing undoes.
"""

from __future__ import annotations

import fcntl
import gc
import os
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Tuple

from .. import frames, kernel
from . import isolate

AGENT_SOCKET = 3
ISOLATION_FAILED = 97
AGENT_FAILED = 98
#: Of a fork message: the sandbox's number, how many descriptors are its own, how many of those are groups to join, its
#: shape, and its box, which is what its agent is told.
Order = Tuple[int, int, int, isolate.Shape, Dict[str, Any]]

_NO_DESCRIPTOR = 1 << 20  # higher than any that is open

_call, _close_from, _monotonic_ns = kernel.bare, kernel.close_from, time.monotonic_ns
_exit, _enable_gc = os._exit, gc.enable
_DUP3, _CLOEXEC = kernel.NR_DUP3, os.O_CLOEXEC
_Socket = socket.socket


def order(number: int, fds: int, header: Mapping[str, Any]) -> Order:
    """For the node: a sandbox's order, made of what it is to be."""
    box = {"events": [], **header}
    return number, fds, box.pop("cgroups", 0), isolate.shape(box), box


class Newborn:
    """What forks of one template have in common. `null` is open on /dev/null."""

    def __init__(self, isolator: isolate.Isolator, null: int, config: Mapping[str, Any]) -> None:
        self._isolator = isolator
        self._nothing = [("descriptors", _call, (kernel.NR_DUP2, null, fd)) for fd in range(AGENT_SOCKET)]
        self._settings = {"python": config.get("python", True), "interpreter": config.get("interpreter")}
        if "cwd" in config:
            self._settings["cwd"] = config["cwd"]

    def prepare(
        self, order: Order, network: int, fds: List[int], take: Callable[[isolate.Steps], None] = isolate.take
    ) -> Tuple[socket.socket, int]:
        """Shut the calling process in, and leave it the agent's socket and event counters; that socket, and when.

        `fds` are the socket, the files of the groups to join, those with event counters, and the ground. The order's
        box is made the agent's configuration. Raises `isolate.Failed`.
        """
        _, _, groups, shape, box = order
        ground = fds.pop() if shape[3] else -1
        take(self._isolator.steps(shape, network, fds[1 : 1 + groups], ground))
        ready_ns = _monotonic_ns()
        del fds[1 : 1 + groups]
        if shape[4]:
            fds.append(self._isolator.upper)
            box["layer_fd"] = AGENT_SOCKET + len(fds) - 1
        for at, name in enumerate(box["events"], AGENT_SOCKET + 1):
            box[name + "_events_fd"] = at
        box.update(self._settings)
        take(self._keep_only(fds))
        return _Socket(fileno=AGENT_SOCKET), ready_ns

    def _keep_only(self, wanted: List[int]) -> isolate.Steps:
        """To leave 0-2 on /dev/null, the agent's socket, the cgroups' event counters, and nothing of the template's."""
        end = AGENT_SOCKET + len(wanted)
        if min(wanted) < end:  # dup3 must not run over one that is still to come
            wanted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in wanted]
        kept: List[isolate.Step] = []
        for at, fd in enumerate(wanted, AGENT_SOCKET):
            kept.append(("descriptors", _call, (_DUP3, fd, at, _CLOEXEC)))
        return [self._nothing, kept, (("descriptors", _close_from, (end,)),)]

    def rehearse(self, order: Order, network: int, sock: int) -> None:
        """The part of `prepare` that can be undone by going back to the namespaces one came from."""
        self.prepare(order, network, [sock], _take_harmless)[0].detach()


def _take_harmless(steps: isolate.Steps) -> None:
    isolate.take(isolate.harmless(steps))
    isolate.take([_REHEARSED])


_REHEARSED: List[isolate.Step] = [
    ("user namespace", isolate.fill, (b"/dev/null", b"deny")),
    ("descriptors", _close_from, (_NO_DESCRIPTOR,)),
]


def become(main: Callable[..., Any], child: Newborn, order: Order, network: int, fds: List[int]) -> NoReturn:
    """A fork's whole life, `main` being its agent's. Never returns into the template's code."""
    status = AGENT_FAILED
    try:
        if order[3] is None:
            _exit(0)  # a rehearsal
        agent_fd = fds[0]
        try:
            sock, ready_ns = child.prepare(order, network, fds)
        except isolate.Failed as error:
            isolate.tell(agent_fd, error.__context__, str(error))
            _exit(ISOLATION_FAILED)
        _enable_gc()
        box = order[4]
        if "spare" in box and box["spare"]:
            frames.send(sock, {"op": "born", "ready_ns": ready_ns})
        main(sock, ready_ns, box)
        status = 0
    except frames.Closed:
        status = 0
    finally:
        _exit(status)
