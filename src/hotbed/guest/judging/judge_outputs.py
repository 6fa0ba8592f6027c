"""Checkers of program output: the spec's own `check(input, output, answer)`, asked about one output after another.

    {"op":"check","id","checker":bytes,"items":[[input,output,answer: bytes]...],"wall_s":float}   body: all of these
    {"op":"checked","id","answers":[true|false...]}    or    {"op":"checked","id","error":reason}: a broken checker

A checker meets outputs that nobody thought of. It runs in a fork; where it raises, dies or does not end in time the
answer is false: no proof, no credit. Only a source that does not load, before it has seen any output, is the
spec's fault.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any, Dict, List, Tuple

from .. import frames
from .judge_checks import SpecError, explain

Item = Tuple[str, str, str]


def answer(node: frames.Connection, header: Dict[str, Any], body: bytes) -> None:
    """Check all outputs of one job, and say so."""
    texts, start = [], 0
    for size in [header["checker"], *(size for sizes in header["items"] for size in sizes)]:
        texts.append(body[start : start + size].decode("utf-8", "replace"))
        start += size
    items = list(zip(texts[1::3], texts[2::3], texts[3::3]))
    try:
        answers = _check_all(texts[0], items, header["wall_s"])
        node.send({"op": "checked", "id": header["id"], "answers": answers})
    except SpecError as error:
        node.send({"op": "checked", "id": header["id"], "error": str(error)})


def _check_all(source: str, items: List[Item], wall_s: float) -> List[bool]:
    answers: List[bool] = []
    while len(answers) < len(items):
        answers += _check_some(source, items[len(answers) :], wall_s)
    return answers


def _check_some(source: str, items: List[Item], wall_s: float) -> List[bool]:
    """The answers up to the first that does not come, and false for that one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _work(theirs, source, items)
    theirs.close()
    answers: List[bool] = []
    ours.settimeout(wall_s)
    try:
        _read(frames.Connection(ours), answers, len(items), time.monotonic() + wall_s * (len(items) + 1))
    except (OSError, EOFError, frames.FrameError):
        answers.append(False)
    finally:
        ours.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return answers


def _read(link: frames.Connection, answers: List[bool], wanted: int, deadline: float) -> None:
    header, _, _ = link.receive()
    if "error" in header:
        raise SpecError(header["error"])
    while len(answers) < wanted and time.monotonic() < deadline:
        header, _, _ = link.receive()
        answers.append(header.get("answer") is True)


def _work(sock: socket.socket, source: str, items: List[Item]) -> None:
    """The forked process: never returns."""
    namespace: Dict[str, Any] = {"__name__": "checker"}
    try:
        exec(compile(source, "checker.py", "exec", dont_inherit=True), namespace)
        check = namespace["check"]
    except BaseException as error:  # noqa: BLE001  the spec's code may raise anything
        frames.send(sock, {"error": "checker: " + explain(error)})
        os._exit(1)
    frames.send(sock, {"ready": True})
    for item in items:
        try:
            good = check(*item) is True
        except BaseException:  # noqa: BLE001  no proof, no credit
            good = False
        frames.send(sock, {"answer": good})
    os._exit(0)
