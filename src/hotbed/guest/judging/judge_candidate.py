"""One candidate as a judge reaches it: its program, its control channel, its processes, and the stubs of its names."""

from __future__ import annotations

import os
import socket
import time
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import frames
from . import calls, proxies, sealing
from .candidate import HERE
from .judge_checks import Verdict
from .proxy_functions import Function

_MEET_S = 20.0
_MEET_SLACK_S = 2.0  # less than a judge waits for its worker beyond the candidate's own time
_AT_ONCE = 1 << 16  # bytes that a socket takes whether or not the other end reads


class Lost(BaseException):
    """There is no candidate to judge, and that is not its doing: it has not been told its code."""


class Candidate:
    """The other end of one candidate's socket."""

    def __init__(self, sock: socket.socket, code: bytes, files: List[Tuple[str, bytes]], spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._code = code
        self._files = files
        self._control = frames.Connection(sock, header_limit=4096, body_limit=0)
        calls.Channel(sock, tick_s=sealing.TICK_S)  # sets the socket's timeouts
        self._met = self._gone = False
        self._prepared = False
        self._waited: Callable[[], float] = lambda: 0.0
        self._slow: Callable[[], None] = lambda: None
        self._asked: Callable[[], None] = lambda: None
        self._busy: Callable[[bool], None] = lambda busy: None
        self._deadline = time.monotonic() + spec["total_s"]
        self._peers: List[sealing.JudgePeer] = []

    def watch(
        self,
        waited: Callable[[], float],
        slow: Callable[[], None],
        asked: Callable[[], None],
        busy: Callable[[bool], None],
    ) -> None:
        """Who is asked about waiting, and told about slowness, the first question, and that the candidate's code runs
        without being asked anything: while it is loaded."""
        self._waited, self._slow, self._asked, self._busy = waited, slow, asked, busy

    def load(self, names: List[str]) -> Tuple[sealing.JudgePeer, Dict[str, Any]]:
        """One process for everything: load the code; the peer, and what each name is."""
        self._busy(True)
        try:
            self._send("load", names)
            self._meet()
            return self._loaded(self._control.sock)
        finally:
            self._busy(False)

    def session(self, names: List[str]) -> Tuple[sealing.JudgePeer, Dict[str, Any]]:
        """A process that has seen nothing yet: load the code there."""
        self._busy(True)
        try:
            return self._session(names)
        finally:
            self._busy(False)

    def _session(self, names: List[str]) -> Tuple[sealing.JudgePeer, Dict[str, Any]]:
        if not self._prepared:
            self._prepared = True
            self._send("prepare", names)
            self._expect("prepared")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._deliver({"op": "session"}, b"", [theirs.fileno()])
        self._expect("session")
        return self._loaded(ours)

    def ended(self) -> Dict[str, Any]:
        """How the last session's process ended, in its own sandbox's words: good for a message, for nothing else."""
        self._deliver({"op": "ended"})
        return self._expect("ended")

    def close(self, verdict: Verdict) -> None:
        """Nothing more will be asked; add what the peers saw to the verdict."""
        for peer in self._peers:
            verdict.calls += peer.calls
            verdict.tampered = verdict.tampered or peer.tampered
            if peer.over is not None and peer.over.status == "exit" and peer.channel.sock is self._control.sock:
                self._gone = True
            verdict.unsealed += [reason for reason in peer.reasons if reason not in verdict.unsealed]
            peer.channel.sock.close()
        verdict.gone = self._gone
        self._control.close()

    def forget(self) -> None:
        """Close this process's copy of the socket."""
        self._control.close()

    def over(self) -> Optional[sealing.Over]:
        """What ended one of its processes, if anything did."""
        return next((peer.over for peer in self._peers if peer.over is not None), None)

    def calls(self) -> int:
        """How many questions were asked so far."""
        return sum(peer.calls for peer in self._peers)

    def _loaded(self, sock: socket.socket) -> Tuple[sealing.JudgePeer, Dict[str, Any]]:
        channel = calls.Channel(sock, limit=self._spec["reply_bytes"], tick_s=sealing.TICK_S)
        left = max(0.05, self._deadline - time.monotonic())
        patience = sealing.Patience(min(left, self._spec["wall_s"]), self._waited, self._slow)
        peer = sealing.JudgePeer(channel, patience, live_operators=self._spec["live_operators"])
        peer.asked = self._asked
        self._peers.append(peer)
        return peer, peer.loaded()

    def _send(self, op: str, names: List[str]) -> None:
        prelude = self._spec["prelude"].encode("utf-8", "surrogatepass")
        header = {
            "op": op,
            "code": len(self._code),
            "prelude": len(prelude),
            "files": [[path, len(data)] for path, data in self._files],
            "module": self._spec["module"],
            "names": names,
            "cpu_s": self._spec["cpu_s"],
        }
        self._deliver(header, b"".join([self._code, prelude, *(data for _, data in self._files)]))

    def _meet(self) -> None:
        """Hear from the candidate's process that it is there, which it says before it runs a byte of the candidate."""
        if self._met:
            return
        deadline = time.monotonic() + min(_MEET_S, self._spec["total_s"] + _MEET_SLACK_S)
        word = None
        while word is None and time.monotonic() < deadline:
            try:
                word = self._control.sock.recv(1)
            except BlockingIOError:
                pass  # not yet
            except OSError:
                break
        if word != HERE:
            raise Lost("the candidate's sandbox did not come to be")
        self._met = True
        self._deadline = time.monotonic() + self._spec["total_s"]

    def _deliver(self, header: Dict[str, Any], body: bytes = b"", fds: List[int] = []) -> None:  # noqa: B006  never changed
        if len(body) > _AT_ONCE:
            self._meet()
        try:
            frames.send(self._control.sock, header, body, fds)
        except (frames.Closed, OSError) as error:
            self._meet()
            raise self._over(error) from None

    def _over(self, error: Exception) -> sealing.Over:
        self._gone = True
        return sealing.Over("exit", f"the candidate's process ended ({error})")

    def _expect(self, op: str) -> Dict[str, Any]:
        """The one answer that may come now."""
        self._meet()
        deadline = min(self._deadline, time.monotonic() + self._spec["wall_s"])
        while True:
            try:
                header, _, fds = self._control.receive()
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise sealing.Over("timeout", "the candidate's process does not answer") from None
                continue
            except (frames.FrameError, OSError, EOFError) as error:
                raise self._over(error) from None
            for fd in fds:
                os.close(fd)
            if header.get("op") != op:
                raise sealing.Over("candidate_error", "the candidate sent what is no answer")
            return header


def stub(peer: sealing.JudgePeer, found: Dict[str, Any], name: str) -> Any:
    """What the tests get for one of the candidate's names. Raises KeyError where there is none."""
    kind = found[name]
    if kind is None:
        raise KeyError(name)
    return Function(peer, None, name) if kind == "f" else peer.export(name)


class Missing(AttributeError):
    """The tests want a name that the candidate does not define."""


class StubModule(types.ModuleType):
    """What `import solution` gives to the tests. `from solution import *` gives the names that they use."""

    def __init__(self, name: str, peer: sealing.JudgePeer, found: Dict[str, Any], used: List[str]) -> None:
        super().__init__(name)
        self.__dict__["_hotbed"] = (peer, found)
        self.__dict__["__all__"] = [each for each in used if found.get(each)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        peer, found = self.__dict__["_hotbed"]
        try:
            value = stub(peer, found, name)
        except KeyError:
            raise Missing(f"the candidate defines no {name!r}") from None
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """A test puts something in place of a name of the module: the candidate's code meets it, too."""
        peer = self.__dict__["_hotbed"][0]
        if not name.startswith("__"):
            is_own = isinstance(value, Function) and proxies.live(value)[1] is None and value.__name__ == name
            peer.question("unpatch" if is_own else "patch", name, () if is_own else (value,))
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)
        if not name.startswith("__"):
            self.__dict__["_hotbed"][0].question("unpatch", name, ())
