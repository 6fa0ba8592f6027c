"""The template process: a warm interpreter that does nothing but fork sandboxes.

It is pid 1 of its own pid namespace and has exec-ed inside its own user namespace, so it holds every capability there
and none outside; the death of either end of its control channel ends it and, with it, every sandbox below it. It has
one thread, no event loop, and never sees a payload: a spawn message names descriptors, and the request travels on the
sandbox's own socket. Whatever it holds, every later fork can read, so it holds nothing of any client.

Start: read one config message, import what is to be warm, rehearse the fork's path (a first run of anything costs
hundreds of page faults, and every fork would pay them again), give up what no fork needs, freeze the heap, serve.

Control channel (SEQPACKET, JSON, descriptors by SCM_RIGHTS), node to template: `fork` with a batch of boxes and, for
each, its descriptors in order (the agent's socket, then cgroup.procs files); `kill` with a box's id. Template to node:
`ready` or `broken` once, then `exit` per sandbox when it has been reaped, or `failed` if the fork itself did not work.
`witness` is answered by a `witness` with the pidfd of a fork that never runs (see `hotbed.runtime.livefork.witness`);
`wire` opens a sandbox's doors to the egress broker, over the descriptor that comes along (see `wiring`);
`hold` makes a layer of a sandbox and is answered on the socket that comes along (see `layers`).
"""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from .. import forkhooks, frames, kernel, places
from . import dressing, filters, heap, holders, isolate, networks, rehearsal, wiring

CONTROL = 3
MESSAGE_LIMIT = 1 << 16
_AGENT_SOCKET = 3
_FDS_ROOM = socket.CMSG_SPACE(frames.FDS_LIMIT * 4)
_IDLE_S = 0.002
_EVENTS = 64
ISOLATION_FAILED = 97
AGENT_FAILED = 98


class Child:
    """A living sandbox as its template sees it."""

    __slots__ = ("id", "network", "pid", "pidfd")

    def __init__(self, box_id: int, pid: int, pidfd: int, network: networks.Network) -> None:
        self.id = box_id
        self.pid = pid
        self.pidfd = pidfd
        self.network = network


class Zygote:
    """Serves one control channel until its end."""

    def __init__(self, control: socket.socket, config: Dict[str, Any], agent: Any) -> None:
        self._control = control
        self._config = config
        self._agent = agent
        self._isolator = isolate.Isolator(config["attached"], config.get("lowers", ()), config.get("over", ()))
        self._pool = networks.NetworkPool(config["networks"])
        self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._children: Dict[int, Child] = {}  # by pidfd
        self._by_id: Dict[int, Child] = {}
        self._holders = holders.Holders()
        self._witness = -1
        self._poll = select.epoll()
        self._poll.register(control.fileno(), select.EPOLLIN)

    def warm(self) -> None:
        """Run the path of a fork, so that forks find it warm."""
        self._pool.fill_one()
        rehearsal.run(self._isolator, self._pool)
        rehearsal.run_forks(self.rehearse_fork)
        programs = [sys.modules[places.module_of(name)] for name in self._config["programs"]]
        for module in (self._agent, *programs):
            warm = getattr(module, "warm", None)
            if warm is not None:
                warm()

    def rehearse_fork(self) -> None:
        """Fork a child that ends at once, by the way that a spawn message takes."""
        message = json.dumps({"op": "fork", "boxes": [{"id": -1, "fds": 1, "rehearsal": True}]})
        self._spawn(json.loads(message)["boxes"][0], [os.dup(self._null)])
        child, _, _ = self._bury(self._poll.poll(-1, 1)[0][0])
        self._pool.give_back(child.network)

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
            data, ancillary, _, _ = self._control.recvmsg(MESSAGE_LIMIT, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            os._exit(0)
        if not data:
            os._exit(0)
        message = json.loads(data)
        if message["op"] == "fork":
            gc.freeze()  # what was made for the living: no collection in a newborn begins or walks over it
            fds = frames.unpack_fds(ancillary)
            for box in message["boxes"]:
                self._spawn(box, fds[: box["fds"]])
                del fds[: box["fds"]]
        else:
            self._order(message, frames.unpack_fds(ancillary))

    def _order(self, message: Dict[str, Any], fds: List[int]) -> None:
        """Everything but a fork."""
        if message["op"] == "kill":
            self._kill(message["id"])
        elif message["op"] == "hold":
            self._hold(message, fds)
        elif message["op"] == "wire":
            wiring.serve(self._by_id.get(message["id"]), self._pool.home, message, fds)
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
                self._poll.register(self._holders.start(order, self._by_id[order["box"]].pid, fds), select.EPOLLIN)
        except OSError as error:
            isolate.tell(fds[0], error, f"fork: {error}")
        finally:
            for fd in fds:
                os.close(fd)

    def _kill(self, box_id: int) -> None:
        child = self._by_id.get(box_id)
        if child is not None:
            kernel.pidfd_kill(child.pidfd, signal.SIGKILL)

    def _spawn(self, box: Dict[str, Any], fds: List[int]) -> None:
        network: Optional[networks.Network] = None
        try:
            network = self._pool.lease()
            pid = self._fork(box, network, fds)
            child = Child(box["id"], pid, kernel.pidfd_open(pid), network)
        except OSError as error:
            if network is not None:
                network.close()
            isolate.tell(fds[0], error, f"fork: {error}")
            self._send({"op": "failed", "id": box["id"], "message": f"fork: {error}"})
            return
        finally:
            for fd in fds:
                os.close(fd)
        self._children[child.pidfd] = self._by_id[child.id] = child
        self._poll.register(child.pidfd, select.EPOLLIN)

    def _fork(self, box: Dict[str, Any], network: networks.Network, fds: List[int]) -> int:
        """The child is pid 1 of a new pid namespace; the template itself goes on making children in its own."""
        kernel.unshare(kernel.CLONE_NEWPID)
        try:
            pid = os.fork()
            if pid == 0:
                self._become(box, network, fds)
        finally:
            kernel.setns(self._home, kernel.CLONE_NEWPID)
        return pid

    def _become(self, box: Dict[str, Any], network: networks.Network, fds: List[int]) -> NoReturn:
        """The child's whole life. Never returns into the template's code."""
        status = AGENT_FAILED
        try:
            if "rehearsal" in box:
                os._exit(0)
            events = 1 + box.get("cgroups", 0)
            ground = fds.pop() if box.get("depth") else -1
            self._isolate(box, network, fds[1:events], fds[0], ground)
            ready_ns = time.monotonic_ns()
            layer = [self._isolator.upper] if box.get("layer") else []
            sock = self._keep_only(box, [fds[0], *fds[events:], *layer])
            gc.enable()
            box["cwd"] = self._config.get("cwd", box.get("cwd"))
            box.update(python=self._config.get("python", True), interpreter=self._config.get("interpreter"))
            if box.get("spare"):
                frames.send(sock, {"op": "born", "ready_ns": ready_ns})
            self._agent.main(sock, ready_ns, box)
            status = 0
        except frames.Closed:
            status = 0
        finally:
            os._exit(status)

    def _isolate(
        self, box: Dict[str, Any], network: networks.Network, cgroups: List[int], agent_fd: int, ground: int
    ) -> None:
        try:
            self._isolator.enter(box, network.fd, cgroups, ground)
        except isolate.Failed as error:
            isolate.tell(agent_fd, error.__context__, str(error))
            os._exit(ISOLATION_FAILED)

    def _keep_only(self, box: Dict[str, Any], wanted: List[int]) -> socket.socket:
        """Leave 0-2 on /dev/null, the agent's socket, the cgroups' event counters, and nothing of the template's."""
        if min(wanted) < _AGENT_SOCKET + len(wanted):  # dup2 below must not run over one that is still to come
            wanted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in wanted]
        for fd in range(3):
            os.dup2(self._null, fd)
        for offset, fd in enumerate(wanted):
            os.dup2(fd, _AGENT_SOCKET + offset, inheritable=False)
        kernel.close_from(_AGENT_SOCKET + len(wanted))
        for offset, name in enumerate(box.get("events", ()), 1):
            box[name + "_events_fd"] = _AGENT_SOCKET + offset
        if box.get("layer"):
            box["layer_fd"] = _AGENT_SOCKET + len(wanted) - 1
        return socket.socket(fileno=_AGENT_SOCKET)

    def _reap(self, pidfd: int) -> None:
        if pidfd in self._holders:
            self._poll.unregister(pidfd)
            self._holders.reap(pidfd)
            return
        child, status, usage = self._bury(pidfd)
        cpu = {"utime_us": int(usage.ru_utime * 1e6), "stime_us": int(usage.ru_stime * 1e6)}
        self._send({"op": "exit", "id": child.id, "status": status, "maxrss_kib": usage.ru_maxrss, **cpu})
        self._pool.give_back(child.network)

    def _bury(self, pidfd: int) -> Tuple[Child, int, resource.struct_rusage]:
        child = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        del self._by_id[child.id]
        _, status, usage = os.wait4(child.pid, 0)
        return child, status, usage

    def _send(self, message: Dict[str, Any], *fds: int) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._control.sendmsg([json.dumps(message).encode()], rights)
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


def main() -> NoReturn:
    """Run a template on the inherited control channel."""
    control = socket.socket(fileno=CONTROL)
    config = json.loads(control.recv(MESSAGE_LIMIT))
    for name in ("LD_BIND_NOW", "PYTHONHASHSEED"):  # for this process's start only
        os.environ.pop(name, None)
    if config.get("foreign"):  # an image's sandboxes get its variables, not those that this interpreter needs
        os.environ.clear()
    os.environ.update(config.get("environ", {}))
    try:
        agent, modules = load(config)
        zygote = Zygote(control, config, agent)
        zygote.warm()
        agent.conceal()
        settle(filtered=config.get("python") is True)
    except BaseException:  # noqa: BLE001  # boundary: whatever a preloaded module raises, the node is told
        import traceback

        message = traceback.format_exc()[-8000:]
        control.send(json.dumps({"op": "broken", "message": message}).encode())
        os._exit(1)
    version = ".".join(map(str, sys.version_info[:3]))
    control.send(json.dumps({"op": "ready", "pid": os.getpid(), "python": version, "modules": modules}).encode())
    zygote.serve()
