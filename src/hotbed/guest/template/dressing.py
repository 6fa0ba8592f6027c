"""Makes an interpreter that was started bare look like one that was not."""

from __future__ import annotations

import os
import site
import sys
from typing import Any, Mapping


def dress(config: Mapping[str, Any]) -> None:
    """Give it the paths and builtins that a program expects. Started with -S, it has only the standard library."""
    if config.get("python") is True:
        as_image()
    else:
        as_host(config["packages"])
    sys.argv = [""]


def as_host(packages: bool) -> None:
    """This host's interpreter, whose own packages are where the template put them."""
    site.setquit()
    site.setcopyright()
    site.sethelper()
    own = sys.path.pop(0)  # where this package is; no sandbox has it
    assert own == "/.hotbed/lib", own
    if packages:
        sys.path.insert(0, "/opt/packages")
    sys.path += [path for path in site.getsitepackages() if os.path.isdir(path)]


def as_image() -> None:
    """An image's interpreter: only `site` knows what it would find there, .pth files or a virtual environment."""
    own = sys.path.pop(0)
    assert own == "/.hotbed/lib", own
    site.main()
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
