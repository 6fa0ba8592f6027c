"""A template's first steps.

The interpreter takes its heap a megabyte at a time, each piece below whatever was mapped before. So the libraries come
first, and the pieces lie side by side: large pages fit there (see `largepages`), and there are fewer mappings to copy.
"""

from __future__ import annotations

import importlib
from typing import NoReturn

_LIBRARIES = """
    array math _bisect _ctypes _heapq _json _opcode _random _sha512 _socket _struct _typing fcntl mmap resource select
""".split()


def main() -> NoReturn:
    """Run a template, as `zygote` does."""
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:  # what is needed of it says so when it is imported
            continue
    from . import zygote  # after the libraries

    zygote.main()
