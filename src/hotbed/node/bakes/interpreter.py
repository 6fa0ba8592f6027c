"""Which Python an image brings, if any: asked of the image itself, in a sandbox without one.

A program in the image's own sandbox is the only one that can be sure: it follows the image's PATH and links, loads its
libraries, and finds out what is missing. What it prints is believed as far as a template is then started with it.
"""

from __future__ import annotations

import json

from hotbed.errors import Error
from hotbed.runtime.base import Backend, BoxRequest, ExecRequest, TemplateSpec
from hotbed.runtime.images.record import ImagePython

_NAMES = ("python3", "python")
_TIMEOUT_S = 20.0
_OLDEST = (3, 8)
# What the guest imports; a minimal Python lacks some of it.
_MODULES = (
    "array", "atexit", "contextlib", "ctypes", "fcntl", "gc", "importlib", "io", "json", "linecache", "marshal",
    "random", "re", "resource", "select", "signal", "site", "socket", "stat", "struct", "tarfile", "threading",
    "traceback",
)  # fmt: skip
_ASK = (
    "import sys\nmissing = []\n"
    f"for name in {_MODULES!r}:\n"
    "    try:\n        __import__(name)\n    except ImportError:\n        missing.append(name)\n"
    "print('%s\\t%s\\t%s\\t%s' % (sys.executable, '.'.join(map(str, sys.version_info[:3])),"
    " getattr(sys, 'implementation', None) and sys.implementation.name, ' '.join(missing)))"
)


async def find(backend: Backend, image: str) -> tuple[ImagePython | None, str]:
    """The image's Python; or None, and why."""
    template = await backend.template(TemplateSpec(name="image-probe", image=image, programs=(), parks=False))
    box = await template.fork(BoxRequest(use_spare=False))
    try:
        note = "the image has no Python"
        for name in _NAMES:
            request = ExecRequest(kind="commands", argv=((name, "-c", _ASK),), timeout_s=_TIMEOUT_S)
            try:
                outcome = await box.exec(request)
            except Error as error:
                return None, f"looking for Python failed: {error.message}"
            if outcome.status != "ok":
                continue
            found, note = read(outcome.stdout)
            if found is not None:
                return found, ""
        return None, note
    finally:
        await box.kill()


def read(printed: bytes) -> tuple[ImagePython | None, str]:
    """What a Python told of itself."""
    fields = printed.decode(errors="replace").strip("\n").split("\t")
    if len(fields) != 4:
        return None, "the image's Python does not tell what it is"
    executable, version, implementation, missing = fields
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    if implementation != "cpython" or numbers[:2] < _OLDEST or len(numbers) < 3:
        name = json.dumps(f"{implementation} {version}"[:60])
        return None, f"the image's Python is {name}; code needs CPython {'.'.join(map(str, _OLDEST))} or later"
    if missing:
        return None, f"the image's Python {version} lacks {missing[:200]}"
    if not executable.startswith("/"):
        return None, "the image's Python does not know where it is"
    return ImagePython(executable=executable, version=version), ""
