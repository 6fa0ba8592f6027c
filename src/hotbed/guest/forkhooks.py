"""Holding back the at-fork hooks that a template's forks do not need.

`threading` and `random` register hooks that run in every child. A template forks an agent, and the agent a runner, both
from the only thread there is: there the hook of `threading` has nothing to repair, and still costs some fifty page
faults; that of `random` is needed once, in the process that will run a program. So while the template imports, the
hooks of these two modules are kept here; the process that will run a program makes up for them and registers them, so
that forks of the program's own behave as usual.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List

_HELD_MODULES = ("threading", "random")
_LOCKS_ONLY = {"logging", "concurrent.futures.thread", "asyncio.events", "weakref"}
_held: List[Dict[str, Callable[[], Any]]] = []
_owner: List[int] = []
_foreign: List[str] = []
dispensable = False  # whether a fork may skip all hooks: every one was seen, and is held or one that only frees locks
_register = os.register_at_fork


def hold() -> None:
    """From now on, keep the hooks of those modules instead of registering them."""
    _owner[:] = [os.getpid()]
    os.register_at_fork = _keep  # type: ignore[assignment]  # its stub lists each hook by name


def stop() -> None:
    """Register hooks as usual again."""
    global dispensable
    os.register_at_fork = _register
    dispensable = bool(_owner) and not set(_foreign) - _LOCKS_ONLY


def release() -> None:
    """In a fork that will run a program: do what the hooks would have done, and register them. Idempotent."""
    if not _held or _owner == [os.getpid()]:
        return
    for hooks in _held:
        _register(**hooks)
        child = hooks.get("after_in_child")
        if child is not None and _module_of(child) == "random":
            child()
    _held.clear()
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.main_thread()._set_native_id()


def _keep(**hooks: Callable[[], Any]) -> None:
    if all(_module_of(hook) in _HELD_MODULES for hook in hooks.values()):
        _held.append(hooks)
    else:
        _foreign.extend(_module_of(hook) for hook in hooks.values())
        _register(**hooks)


def _module_of(hook: Callable[[], Any]) -> str:
    return str(getattr(hook, "__module__", None) or type(getattr(hook, "__self__", None)).__module__)
