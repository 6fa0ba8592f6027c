"""The guest program that serves one environment over its lane.

    node        starts the program with the lane as its channel; env.py is loaded, unless the template has loaded it
    -> client   {"op": "ready", "closes": bool, "load_ms": float} or {"op": "failed", "status", "reason"} and the end
    <- client   {"op": "reset", "id", "seed"}   -> {"id", "task", "info", "maxrss_kib", "us"}
    <- client   {"op": "step", "id", "action"}  -> {"id", "step": [obs, reward, terminated, truncated, info], "us"}
    <- client   {"op": "reseed", "id", "seed"}  -> {"id"}
    <- client   {"op": "close", "id"}           -> {"id"} and the end
    any of them that failed                     -> {"id", "status": "error|disk|pids|oom", "reason": traceback tail}

An exception in the author's code is an answer and the server lives on; whoever asked decides what becomes of the
episode. The end of the lane is the end of the server.

Between two requests the process sits in read(2) on descriptor 3 with one thread and nothing half done: that is where it
may be frozen, copied or forked from outside.

The author's module runs as `__main__`, as `python env.py` would run it, with two modules already there to import
`serve` from. In a template that loads the environment once for all (boltz mode), `preload` has run before the fork.
"""

from __future__ import annotations

import errno
import gc
import os
import resource
import socket
import sys
import time
import traceback
import types
from typing import Any, Dict, List, Mapping, Optional, Union

from .. import kernel
from . import lane, values
from .environment import BadEnvironment, Environment, reseed

LANE_FD = 3
REASON_LIMIT = 4096
_SLICE_NS = 100_000
_HERE = os.path.dirname(__file__)
SERVE_MODULES = ("hotbed.env", "boltzlabs.env")

_clock = time.perf_counter_ns
_STATUS_OF_ERRNO = {
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk",
    errno.EFBIG: "disk",
    errno.EAGAIN: "pids",
    errno.ENOMEM: "oom",
}


class _Loaded:
    """What loading env.py gave: the environment, or why there is none."""

    def __init__(self, path: str) -> None:
        self.module = types.ModuleType("__main__")
        self.module.__file__ = path
        self.environment: Optional[Environment] = None
        self.failure: Optional[Dict[str, Any]] = None
        started = time.perf_counter()
        try:
            self._run(path)
        except BaseException as error:  # noqa: BLE001 - the author's code may raise anything, SystemExit included
            self.failure = _failure(error)
        self.load_ms = (time.perf_counter() - started) * 1e3

    def serve(self, reset: Any, step: Any, close: Any = None) -> None:
        """What `from hotbed.env import serve` gives inside a worker: keeps the functions and returns at once."""
        if self.environment is not None:
            raise BadEnvironment("serve() was called twice")
        self.environment = Environment(reset, step, close)

    def be_main(self) -> None:
        """Make the interpreter look as if it had been started with env.py, `serve` at hand for a late import."""
        _offer_serve(self.serve)
        sys.modules["__main__"] = self.module
        sys.argv = [str(self.module.__file__)]

    def _run(self, path: str) -> None:
        sys.path.insert(0, os.path.dirname(path))
        self.be_main()
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, self.module.__dict__)
        if self.environment is None:
            raise BadEnvironment("env.py ended without calling serve(reset=..., step=...)")


_preloaded: List[_Loaded] = []


def preload(path: str) -> None:
    """Load env.py now, in a template, for every environment that is forked from it. Never raises: workers report."""
    outer, argv = sys.modules["__main__"], sys.argv
    _preloaded.append(_Loaded(path))
    sys.modules["__main__"], sys.argv = outer, argv


def _offer_serve(serve: Any) -> None:
    for name in SERVE_MODULES:
        module = types.ModuleType(name, "The environment's side of a pool.")
        module.__dict__.update(serve=serve, __all__=["serve"])
        package = name.split(".", 1)[0]
        if package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = []
        sys.modules[name] = sys.modules[package].__dict__["env"] = module


def main(channel: socket.socket, config: Mapping[str, Any]) -> None:
    """Load the environment and serve it until the lane ends."""
    _move_to_lane_fd(channel)
    _take_short_turns()
    if config.get("vessel"):
        os.read(LANE_FD, 1)  # from here on it is somebody else: runtime/livefork/loading.py
        return
    loaded = _preloaded[0] if _preloaded else _Loaded(str(config["path"]))
    loaded.be_main()
    gc.freeze()  # what env.py built lives as long as the process: no collection walks it again
    if loaded.environment is None:
        _send({"op": "failed", **(loaded.failure or {})})
        return
    _send({"op": "ready", "closes": loaded.environment.closes, "load_ms": loaded.load_ms})
    _Server(loaded.environment).run()


def _move_to_lane_fd(channel: socket.socket) -> None:
    """The lane is descriptor 3 and nothing else, closed in whatever the author's code execs."""
    fd = channel.detach()
    if fd != LANE_FD:
        os.dup2(fd, LANE_FD, inheritable=False)
        os.close(fd)
    os.set_inheritable(LANE_FD, False)
    os.set_blocking(LANE_FD, True)


def _take_short_turns() -> None:
    """A step is a short burst after a wake-up. Where other work keeps the CPUs busy, long turns would come late."""
    try:
        if kernel.SUPPORTED:
            kernel.take_short_turns(_SLICE_NS)
    except OSError:  # this kernel or a policy around us refuses; nothing depends on it
        pass


class _Server:
    """Answers requests one at a time.

    A worker is woken for each step, and every page that it then touches is cold. So the usual step, plain data with
    plain data for an answer, is one function and goes round what the others go through.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._step = environment.step_function
        self._inbox = lane.Inbox()
        self._forked = False
        os.register_at_fork(after_in_child=self._be_forked)

    def _be_forked(self) -> None:
        self._forked = True

    def run(self) -> None:
        """Serve until the lane ends or the client says close."""
        read, packet_size, take = os.read, lane.PACKET, self._inbox.take
        while True:
            packet = read(LANE_FD, packet_size)
            if not packet:
                return
            request = take(packet)
            if request is None:
                continue
            reply = self._step_plainly(request) if request["op"] == "step" else self._answer(request)
            if self._forked:
                os._exit(1)  # a child that the author's code forked came back here: it has no lane
            if not _send_or_explain(reply) or request["op"] == "close":
                return

    def _step_plainly(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        started = _clock()
        try:
            given = self._step(request["action"])
            if type(given) is tuple and len(given) == 4:
                seen, reward, done, info = given
                plain = type(reward) is float and reward - reward == 0.0 and type(done) is bool and type(info) is dict
                if plain:  # a difference that is not 0.0 is not a finite number's
                    us = (_clock() - started) // 1000
                    return {"step": (seen, reward, done, False, info), "id": request["id"], "us": us}
            reply: Dict[str, Any] = {"step": self._environment.settled(given)}
        except BaseException as error:  # noqa: BLE001 - the author's code may raise anything, SystemExit included
            reply = _failure(error)
        reply.update(id=request["id"], us=(_clock() - started) // 1000)
        return reply

    def _answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        started = _clock()
        try:
            reply = self._call(request)
        except BaseException as error:  # noqa: BLE001 - the author's code may raise anything, SystemExit included
            reply = _failure(error)
        reply.update(id=request["id"], us=(_clock() - started) // 1000)
        return reply

    def _call(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        operation = request["op"]
        if operation == "reset":
            task, info = self._environment.reset(request["seed"])
            return {"task": task, "info": info, "maxrss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
        if operation == "reseed":
            reseed(request["seed"])
            return {}
        if operation == "close":
            self._environment.close()
            return {}
        raise ValueError(f"unknown operation {operation!r}")


def _send_or_explain(reply: Dict[str, Any]) -> bool:
    """Send a reply; one that cannot cross becomes a failure that says why. False when nobody reads any more."""
    try:
        return _send(reply)
    except (TypeError, ValueError, MemoryError) as error:
        name = "task" if "task" in reply else "observation or info"
        reason = f"{name} cannot be sent: {error}"
        return _send({"id": reply["id"], "us": reply["us"], "status": "error", "reason": reason})


def _send(header: Dict[str, Any]) -> bool:
    frame = values.pack(header)
    try:
        if len(frame) <= lane.PACKET:
            sent = os.write(LANE_FD, frame)
            if sent == len(frame):
                return True
            frame = frame[sent:]  # a stream may take a part; a sequenced packet goes out whole
        for packet in lane.packets(frame):
            _write(packet)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _write(packet: Union[bytes, memoryview]) -> None:
    while packet:  # a sequenced packet goes out whole; a stream may take a part
        packet = packet[os.write(LANE_FD, packet) :]


def _failure(error: BaseException) -> Dict[str, Any]:
    status = "oom" if isinstance(error, MemoryError) else "error"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        status = "pids"
    if isinstance(error, OSError):
        status = _STATUS_OF_ERRNO.get(error.errno or 0, status)
    return {"status": status, "reason": _traceback_tail(error)}


def _traceback_tail(error: BaseException) -> str:
    """The end of the traceback as the author should read it: without this package's frames."""
    if isinstance(error, BadEnvironment):
        return str(error)
    try:
        report = traceback.TracebackException.from_exception(error)
        frames = [frame for frame in report.stack if not frame.filename.startswith(_HERE)]
        report.stack = traceback.StackSummary.from_list(frames)
        text = "".join(report.format()).strip()
    except Exception:  # noqa: BLE001 - an exception whose own __str__ raises
        text = type(error).__name__
    return text if len(text) <= REASON_LIMIT else "..." + text[-REASON_LIMIT:]
