"""An agent's loop: several commands in one sandbox. Here the agent is a list."""

from __future__ import annotations

import sys

from hotbed import Sandbox

COMMANDS = [
    "printf 'def add(a, b):\\n    return a - b\\n' > calc.py",
    "python -c 'import calc; assert calc.add(2, 2) == 4'",
    "sed -i 's/a - b/sum((a, b))/' calc.py",
    "python -c 'import calc; assert calc.add(2, 2) == 4' && echo fixed",
]


def show(stream: int, data: bytes) -> None:
    """Print a piece of output where it belongs."""
    (sys.stdout if stream == 1 else sys.stderr).write(data.decode(errors="replace"))


def main() -> None:
    """Run the commands and take the result home."""
    with Sandbox("python", default_timeout=10) as sandbox:
        print(f"forked in {sandbox.fork_time_ms:.2f} ms, warm: {sandbox.warm_hit}")
        for command in COMMANDS:
            print(f"$ {command}")
            result = sandbox.exec(command=command, on_output=show)
            print(f"[{result.status}]")
        print(sandbox.download("/work/calc.py").decode())


if __name__ == "__main__":
    main()
