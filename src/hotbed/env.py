"""The environment's side of a pool.

    from hotbed.env import serve  # or: from boltzlabs.env import serve

    def reset(seed): ...          # the task
    def step(action): ...         # (observation, reward, done, info)

    serve(reset=reset, step=step)

In a worker `serve` is the environment server's own, which takes the functions and returns. This module is what the
import finds everywhere else: run as a script, env.py then plays one episode in the terminal, in a process that sees
/env and /workspace if its text names them; imported by another module, it just hands out its functions. Standard
library only, Python 3.8 or newer: sandboxes see a copy.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from hotbed.guest.environments.environment import Environment

__all__ = ["serve"]

_PLACES = re.compile(rb"(?<![\w./])/(?:env|workspace)\b")
_NO_SUCH_PLACE = "hint: /env and /workspace exist in workers only; `hotbed env check DIR` runs this in one\n"


def serve(reset: Callable[..., Any], step: Callable[[Any], Any], close: Callable[[], Any] | None = None) -> None:
    """Hand an environment's functions over.

    `reset(seed)` returns the task. `step(action)` returns (observation, reward, done, info), or gymnasium's five
    values. `close()` is called, if given, when the pool closes.
    """
    environment = Environment(reset, step, close)
    caller = sys._getframe(1).f_globals
    if caller.get("__name__") == "__main__":
        loop = DebugLoop(environment, sys.stdin, sys.stdout)
        sys.exit(_run_in_view(str(caller.get("__file__", "")), lambda: loop.run(sys.argv[1:])))


def _run_in_view(script: str, play: Callable[[], int]) -> int:
    """Where env.py names a worker's places and this machine has none, it is shown some."""
    try:
        with open(script, "rb") as file:
            names_places = _PLACES.search(file.read()) is not None
    except OSError:  # typed in, or run from a pipe
        names_places = False
    if not names_places or os.path.isdir("/env") or not sys.platform.startswith("linux"):
        return play()
    from hotbed.guest.environments import local_view

    return local_view.run(os.path.dirname(os.path.abspath(script)), play)


class DebugLoop:
    """One episode in the terminal: prints the task, reads an action as JSON from each line, prints what it gave."""

    def __init__(self, environment: Environment, source: TextIO, sink: TextIO) -> None:
        self._environment = environment
        self._source = source
        self._sink = sink

    def run(self, arguments: list[str]) -> int:
        """Play until the episode is done or the input ends; the exit code."""
        parser = argparse.ArgumentParser(description="Play one episode: an action a line, as JSON.")
        parser.add_argument("--seed", type=int, default=0, help="the seed given to reset (0)")
        seed = parser.parse_args(arguments).seed
        try:
            self._play(seed)
            return 0
        except Exception as error:  # noqa: BLE001  # boundary: the author's code, in the author's terminal
            traceback.print_exception(type(error), error, error.__traceback__)
            if isinstance(error, FileNotFoundError) and str(error.filename).startswith(("/env", "/workspace")):
                sys.stderr.write(_NO_SUCH_PLACE)
            return 1
        finally:
            self._environment.close()

    def _play(self, seed: int) -> None:
        task, _ = self._environment.reset(seed)
        self._show("task", task)
        for action in self._actions():
            outcome = self._environment.step(action)
            for name, value in outcome._asdict().items():
                self._show(name, value)
            if outcome.terminated or outcome.truncated:
                return

    def _actions(self) -> Any:
        while True:
            if self._source.isatty():
                self._sink.write("action (JSON)> ")
                self._sink.flush()
            line = self._source.readline()
            if not line:
                return
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except ValueError as error:
                self._sink.write(f"not JSON: {error}; a string needs its quotes\n")

    def _show(self, name: str, value: Any) -> None:
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            text = repr(value)
        self._sink.write(f"{name}: {text}\n")
