"""Imported in a template of environments: makes warm what every environment forked from it will need.

What to warm is in the variable `HOTBED_ENV_PRELOAD`, as JSON: {"paths": [...], "modules": [...], "env": path or null}.
`paths` go to the front of the import path and `modules` are imported, each on its own: one that fails is left for the
environment itself to fail on, where its author is told. With `env` the environment is loaded here, once for all of them
(boltz mode).
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from . import env_server

VARIABLE = "HOTBED_ENV_PRELOAD"


def warm(plan: str) -> None:
    """Do what the plan says."""
    wanted = json.loads(plan)
    sys.path[:0] = [path for path in wanted["paths"] if path not in sys.path]
    for module in wanted["modules"]:
        try:
            importlib.import_module(module)
        except BaseException:  # noqa: BLE001  # boundary: a stranger's module; the environment will tell
            continue
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # numpy would load it at the first reset, in each environment anew
    if wanted["env"]:
        env_server.preload(wanted["env"])


if VARIABLE in os.environ:
    warm(os.environ.pop(VARIABLE))
