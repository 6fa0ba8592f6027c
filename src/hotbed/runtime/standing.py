"""What a template has in each of its sandboxes from the first: a command that runs, or one that waits for a program."""

from __future__ import annotations

from dataclasses import dataclass

from hotbed.errors import InvalidRequest

_STDIN = " -"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What runs in each sandbox from the first. `cmd` has to exit 0, or to answer: 2xx at `http`, on all `ports`."""

    cmd: str
    http: str = ""
    ports: tuple[int, ...] = ()
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """What runs a template's `code`, instead of the warm Python: two command lines, which a shell reads.

    `wait` reads a program on stdin to its end, then runs it; parked sandboxes have it waiting. `file` is the same but
    for a path that follows it, for a program that gets a stdin of its own; without it there can be none.
    """

    wait: str
    file: str = ""

    @classmethod
    def of(cls, warm_cmd: str) -> Interpreter | None:
        """Of a `warm_cmd`, whose last word may be the `-` that stands for stdin. None of an empty one."""
        if not warm_cmd.strip():
            return None
        if "\0" in warm_cmd or "\n" in warm_cmd:
            raise InvalidRequest("warm_cmd is one line", hint='such as "ruby -": it reads its program on stdin')
        command = warm_cmd.strip()
        return cls(wait=command, file=command[: -len(_STDIN)].rstrip() if command.endswith(_STDIN) else "")
