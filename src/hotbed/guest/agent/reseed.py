"""A fork of a warm interpreter must not repeat its siblings' random numbers.

`secrets`, `os.urandom`, `uuid4` and `random.SystemRandom` ask the kernel each time, OpenSSL notices a fork itself, and
`random` has a hook for its hidden instance (see `forkhooks`). What is left is state that some module computed before
the fork. Hash seeds (`str.__hash__`) cannot change after the interpreter started: all forks of a template share them.
"""

from __future__ import annotations

import sys
from typing import Optional

from .. import forkhooks


def reseed(entropy: Optional[bytes] = None) -> None:
    """Give this process random state of its own: from the kernel, or reproducibly from `entropy`."""
    forkhooks.release()
    modules = sys.modules
    uuid = modules.get("uuid")
    if uuid is not None:
        uuid.__dict__.update(_node=None, _last_timestamp=None)
    tempfile = modules.get("tempfile")
    if tempfile is not None:
        tempfile.__dict__["_name_sequence"] = None
    numpy_random = modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(None if entropy is None else [len(entropy), *entropy])
    random = modules.get("random")
    if random is not None and entropy is not None:  # imported later, it asks the kernel
        random.seed(entropy)
