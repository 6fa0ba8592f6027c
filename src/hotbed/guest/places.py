"""Where a program's module is: templates import them ahead by the short names that specs use."""

from __future__ import annotations

from typing import Dict

_HOMES: Dict[str, str] = {
    "candidate": "judging.candidate",
    "judge": "judging.judge",
    "env_server": "environments.env_server",
}


def module_of(program: str) -> str:
    """The full name of a program's module."""
    return f"{__package__}.{_HOMES.get(program, program)}"
