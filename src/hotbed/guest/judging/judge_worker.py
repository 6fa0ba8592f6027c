"""A judge's worker: judges one candidate after another in one process that holds the compiled tests."""

from __future__ import annotations

import gc
import json
import mmap
import os
import random
import socket
import sys
import time
from typing import Any, Callable, Dict, List

from .. import frames, kernel
from ..agent.reseed import reseed
from . import sealing
from .judge_candidate import Candidate, Lost
from .judge_cases import CaseStyle, PropertyStyle
from .judge_checks import SpecError, Verdict, explain
from .judge_modules import ModuleStyle
from .judge_scripts import ScriptStyle

UNASKED, ASKED, LOADING = 0, 1, 2  # how far a candidate has a part in what its worker does

STYLES: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "script": ScriptStyle,
    "check": ScriptStyle,
    "unittest": ModuleStyle,
    "pytest": ModuleStyle,
    "cases": CaseStyle,
    "property": PropertyStyle,
}


class Job:
    """What the node asked for, as it came: the supervisor reads none of it, its workers read what they need."""

    def __init__(self, header: Dict[str, Any], body: bytes, fds: List[int]) -> None:
        self._header = header
        self._body = body
        self.fds = fds

    def spec(self) -> Dict[str, Any]:
        """The spec."""
        text = self._body[: self._header["spec"]]
        found: Dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass"))
        return found

    def candidates(self, spec: Dict[str, Any], wanted: List[int]) -> Dict[int, Candidate]:
        """Those of the indices that are wanted. For the process that will speak with them."""
        found = {}
        start = self._header["spec"]
        for index, (size, files) in enumerate(self._header["codes"]):
            code, start = self._body[start : start + size], start + size
            extra = []
            for path, length in files:
                extra.append((path, self._body[start : start + length]))
                start += length
            if index in wanted:
                found[index] = Candidate(socket.socket(fileno=self.fds[index]), code, extra, spec)
        return found

    def forget(self, index: int) -> None:
        """Close this process's copy of a candidate's socket."""
        os.close(self.fds[index])


class Worker:
    """Runs in a fork of the judge. Tells it each verdict, and when an answer is slow to come."""

    def __init__(self, up: frames.Connection, spec: Dict[str, Any], answered: mmap.mmap) -> None:
        self._up = up
        self._spec = spec
        self._answered = answered
        self._index = -1
        self._slow = False

    def run(self, candidates: Dict[int, Candidate]) -> None:
        """Judge these, until one is slow: the others then have another worker."""
        gc.disable()  # what compiling makes by the thousand is no garbage
        try:
            style = STYLES[self._spec["style"]](self._spec)
        except SpecError as error:
            self._up.send({"op": "spec_error", "reason": str(error)})
            return
        finally:
            gc.enable()
        for index, candidate in candidates.items():
            self._index = index
            self._up.send(dict(self._verdict(style, candidate), op="verdict", index=index))
            if self._slow:
                return

    def _verdict(self, style: Any, candidate: Candidate) -> Dict[str, Any]:
        started = time.monotonic()
        candidate.watch(self._waited, self._tell_slow, self._asked, self._busy)
        self._seed()
        try:
            verdict: Verdict = style.run(candidate)
        except sealing.Over as over:
            verdict = Verdict()
            verdict.say("candidate_error" if over.status == "exit" else over.status, over.reason)
        except SpecError as error:
            verdict = Verdict()
            verdict.say("spec_error", str(error))
        except Lost as lost:
            verdict = Verdict()
            verdict.say("lost", str(lost))
        candidate.close(verdict)
        if verdict.status == "exit":
            verdict.status = "candidate_error"
        found = verdict.to_wire()
        found["seconds"] = time.monotonic() - started
        return found

    def _seed(self) -> None:
        """The same draws for every sibling, whatever the ones before them used up."""
        random.seed("{}/tests".format(self._spec["seed"]))
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(random.getrandbits(32))

    def _asked(self) -> None:
        """From here on this candidate's answers have a part in what happens."""
        self._answered[self._index] = ASKED

    def _busy(self, busy: bool) -> None:
        """While its code is loaded, what goes wrong is its doing, though it has not been asked anything."""
        if self._answered[self._index] != ASKED:
            self._answered[self._index] = LOADING if busy else UNASKED

    def _tell_slow(self) -> None:
        if not self._slow:
            self._slow = True
            self._up.send({"op": "slow", "index": self._index})

    def _waited(self) -> float:
        """How long the candidate could have run and had no CPU, since last asked."""
        self._up.send({"op": "usage", "index": self._index})
        self._up.sock.settimeout(1.0)
        try:
            header, _, _ = self._up.receive()
        except (OSError, EOFError):
            return 0.0
        finally:
            self._up.sock.settimeout(None)
        waited = header.get("waited_s")
        return float(waited) if isinstance(waited, (int, float)) else 0.0


def work(up: frames.Connection, job: Job, answered: mmap.mmap, indices: List[int]) -> None:
    """The worker's process: never returns."""
    try:
        reseed()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # the supervisor is not; tests are to find an ordinary process
        spec = job.spec()
        Worker(up, spec, answered).run(job.candidates(spec, indices))
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  the process boundary: the supervisor sees the end and decides
        sys.stderr.write(f"judge worker: {explain(error)}\n")
        os._exit(1)
