"""The template process: a warm interpreter that does nothing but fork sandboxes.

It is pid 1 of its own pid namespace and has exec-ed inside its own user namespace, so it holds every capability there
and none outside; the death of either end of its control channel ends it and, with it, every sandbox below it. It has
one thread, no event loop, and never sees a payload: a spawn message names descriptors, and the request travels on the
sandbox's own socket. Whatever it holds, every later fork can read, so it holds nothing of any client.

Start: read one config message, import what is to be warm, rehearse the fork's path (a first run of anything costs
hundreds of page faults, and every fork would pay them again), give up what no fork needs, freeze the heap, serve.

Control channel (SEQPACKET, JSON but for what is in `control`, descriptors by SCM_RIGHTS), node to template: a list of
orders to fork (`newborn.Order`), with the descriptors of each (the agent's socket, then cgroup.procs files); a `KILL`.
Template to node: `ready` or `broken` once, then an `EXIT` per sandbox that was reaped, or `failed` if none was made.
`witness` is answered by a `witness` with the pidfd of a fork that never runs (see `hotbed.runtime.livefork.witness`);
`wire` opens a sandbox's doors to the egress broker, over the descriptor that comes along (see `wiring`);
`hold` makes a layer of a sandbox and is answered on the socket that comes along (see `layers`).
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from .. import forkhooks, frames, jsontext, kernel, places
from . import (
    control,
    dressing,
    filters,
    gathering,
    heap,
    holders,
    isolate,
    largepages,
    networks,
    newborn,
    rehearsal,
    wiring,
)

CONTROL = 3
MESSAGE_LIMIT = 1 << 16
_FDS_ROOM = socket.CMSG_SPACE(frames.FDS_LIMIT * 4)
_IDLE_S = 0.002
_EVENTS = 64

# By names of their own, and plain ints where there are enums: each object on the way of a fork is a page to copy.
_bare, _freeze, _close = kernel.bare, gc.freeze, os.close
_UNSHARE, _SETNS, _NEWPID = kernel.NR_UNSHARE, kernel.NR_SETNS, kernel.CLONE_NEWPID
_PIDFD_OPEN = kernel.NR_PIDFD_OPEN
_CLOEXEC, _READABLE = int(socket.MSG_CMSG_CLOEXEC), int(select.EPOLLIN)
_loads, _unpack_fds = jsontext.loads, frames.unpack_fds
_exit_message, _kill_message = control.EXIT.pack, control.KILL.unpack

Child = Tuple[int, int, int, networks.Network]  # a living sandbox: its id, its pid 1, a pidfd of that, its network


class Zygote:
    """Serves one control channel until its end."""

    def __init__(self, channel: socket.socket, config: Dict[str, Any], agent: Any) -> None:
        self._channel = channel
        self._config = config
        self._agent = agent
        self._agent_main = agent.main
        # Without hooks there is nothing for the interpreter to repair in a fork: see `forking` in the agent's room.
        self._fork_itself = kernel.fork if forkhooks.dispensable else os.fork
        self._pool = networks.NetworkPool(config["networks"])
        self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        isolator = isolate.Isolator(config["attached"], config.get("lowers", ()), config.get("over", ()))
        self._newborn = newborn.Newborn(isolator, self._null, config)
        self._children: Dict[int, Child] = {}  # by pidfd
        self._by_id: Dict[int, Child] = {}
        self._holders = holders.Holders()
        self._witness = -1
        self._poll = select.epoll()
        self._poll.register(channel.fileno(), _READABLE)

    def warm(self) -> None:
        """Run the path of a fork, so that forks find it warm."""
        self._pool.fill_one()
        gathering.gather(lambda: self._rehearse(rounds=2))
        self._rehearse(rounds=rehearsal.ROUNDS)
        for name in self._config["programs"]:
            warm = getattr(sys.modules[places.module_of(name)], "warm", None)
            if warm is not None:
                warm()

    def _rehearse(self, rounds: int) -> None:
        rehearsal.run(self._newborn, self._pool, self._null, rounds)
        rehearsal.run_forks(self.rehearse_fork, rounds)
        self._agent.warm(rounds)

    def rehearse_fork(self) -> None:
        """Fork a child that ends at once, by the way that a spawn message takes."""
        message = jsontext.dumps([[0, 1, 0, None, {}]])
        self._spawn(jsontext.loads(message)[0], [os.dup(self._null)])
        self._pool.give_back(self._bury(self._poll.poll(-1, 1)[0][0])[1])

    def serve(self) -> NoReturn:
        """Fork, reap and report until the control channel ends."""
        while True:
            idle_s = _IDLE_S if self._pool.wants_more() else -1
            events = self._poll.poll(idle_s, _EVENTS)
            if not events:
                self._pool.fill_one()
            for fd, _ in events:
                if fd == CONTROL:
                    self._receive()
                else:
                    self._reap(fd)

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self._channel.recvmsg(MESSAGE_LIMIT, _FDS_ROOM, _CLOEXEC)
        except ConnectionResetError:
            os._exit(0)
        if not data:
            os._exit(0)
        if not data[0]:
            self._kill(_kill_message(data)[1])
            return
        message = _loads(data)
        fds = _unpack_fds(ancillary)
        if type(message) is not list:
            self._order(message, fds)
            return
        _freeze()  # what was made for the living: no collection in a newborn begins or walks over it
        for order in message:
            self._spawn(order, fds[: order[1]])
            del fds[: order[1]]

    def _order(self, message: Dict[str, Any], fds: List[int]) -> None:
        """Everything but a fork and a kill."""
        if message["op"] == "hold":
            self._hold(message, fds)
        elif message["op"] == "wire":
            child = self._by_id.get(message["id"])
            wiring.serve(child and child[3], self._pool.home, message, fds)
        elif message["op"] == "witness":
            self._send({"op": "witness"}, self._fork_witness())

    def _fork_witness(self) -> int:
        """A fork that never runs: what this process is now, for as long as it lives. Its pidfd."""
        if self._witness < 0:
            pid = os.fork()
            if pid == 0:
                kernel.close_from(0)
                while True:
                    signal.pause()
            self._witness = kernel.pidfd_open(pid)
        return self._witness

    def _hold(self, order: Dict[str, Any], fds: List[int]) -> None:
        """Have a layer made of a sandbox; who asked hears of it on the socket, or finds that closed."""
        try:
            if order["box"] in self._by_id:
                self._poll.register(self._holders.start(order, self._by_id[order["box"]][1], fds), _READABLE)
        except OSError as error:
            isolate.tell(fds[0], error, f"fork: {error}")
        finally:
            for fd in fds:
                os.close(fd)

    def _kill(self, box_id: int) -> None:
        child = self._by_id.get(box_id)
        if child is not None:
            kernel.pidfd_kill(child[2], 9)

    def _spawn(self, order: newborn.Order, fds: List[int]) -> None:
        network: Optional[networks.Network] = None
        pid = 0
        try:
            network = self._pool.lease()
            pid = self._fork(order, network, fds)
            pidfd: int = _bare(_PIDFD_OPEN, pid, 0)
            if pidfd == -1:
                raise kernel.failure()
        except OSError as error:
            if pid:  # no descriptor was left to watch it by
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if network is not None:
                network.close()
            isolate.tell(fds[0], error, f"fork: {error}")
            self._send({"op": "failed", "id": order[0], "message": f"fork: {error}"})
            return
        finally:
            for fd in fds:
                _close(fd)
        box_id = order[0]
        self._children[pidfd] = self._by_id[box_id] = (box_id, pid, pidfd, network)
        self._poll.register(pidfd, _READABLE)

    def _fork(self, order: newborn.Order, network: networks.Network, fds: List[int]) -> int:
        """The child is pid 1 of a new pid namespace; the template itself goes on making children in its own."""
        if _bare(_UNSHARE, _NEWPID) == -1:
            raise kernel.failure()
        try:
            pid: int = self._fork_itself()
            if pid == -1:
                raise kernel.failure()
            if pid == 0:
                newborn.become(self._agent_main, self._newborn, order, network.fd, fds)
        finally:
            if _bare(_SETNS, self._home, _NEWPID) == -1:
                raise kernel.failure()
        return pid

    def _reap(self, pidfd: int) -> None:
        if pidfd not in self._children:
            self._poll.unregister(pidfd)
            self._holders.reap(pidfd)
            return
        message, network = self._bury(pidfd)
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)
        self._pool.give_back(network)

    def _bury(self, pidfd: int) -> Tuple[bytes, networks.Network]:
        """Reap a sandbox; what there is to say about it, and the network that it had."""
        box_id, pid, _, network = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        _close(pidfd)
        del self._by_id[box_id]
        status, cpu_us, maxrss_kib = kernel.reap(pid)
        return _exit_message(0, box_id, status, maxrss_kib, cpu_us), network

    def _send(self, message: Dict[str, Any], *fds: int) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._channel.sendmsg([jsontext.dumps(message)], rights)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)


def load(config: Dict[str, Any]) -> Tuple[Any, List[str]]:
    """Import the agent and its programs, then what the template preloads."""
    forkhooks.hold()
    agent = importlib.import_module(places.module_of("agent.life"))
    for program in config["programs"]:
        importlib.import_module(places.module_of(program))
    dressing.dress(config)
    for module in config["preload"]:
        importlib.import_module(module)
    forkhooks.stop()
    return agent, sorted(config["preload"])


def settle(filtered: bool = False) -> None:
    """Give up for good what no fork needs, and make the heap one that forks can share."""
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a preloaded module started threads; a fork would lose them")
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(None, b"/", None, flags, None)  # what sandboxes share of it, no sandbox may change
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # pid 1 is immune to what it has no handler for
    kernel.empty_bounding_set()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if not filtered:
        kernel.Filter(filters.template_filter()).install()
    sys.stdout.flush()
    sys.stderr.flush()
    heap.settle()
    largepages.lay()


def main() -> NoReturn:
    """Run a template on the inherited control channel."""
    channel = socket.socket(fileno=CONTROL)
    config = json.loads(channel.recv(MESSAGE_LIMIT))
    for name in ("LD_BIND_NOW", "PYTHONHASHSEED"):  # for this process's start only
        os.environ.pop(name, None)
    if config.get("foreign"):  # an image's sandboxes get its variables, not those that this interpreter needs
        os.environ.clear()
    os.environ.update(config.get("environ", {}))
    try:
        agent, modules = load(config)
        zygote = Zygote(channel, config, agent)
        zygote.warm()
        agent.conceal()
        settle(filtered=config.get("python") is True)
    except BaseException:  # noqa: BLE001  # boundary: whatever a preloaded module raises, the node is told
        import traceback

        message = traceback.format_exc()[-8000:]
        channel.send(json.dumps({"op": "broken", "message": message}).encode())
        os._exit(1)
    version = ".".join(map(str, sys.version_info[:3]))
    channel.send(json.dumps({"op": "ready", "pid": os.getpid(), "python": version, "modules": modules}).encode())
    zygote.serve()
