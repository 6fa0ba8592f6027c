"""The files of a sandbox are tested with it: here, that the two faces are one."""

from __future__ import annotations

import inspect

from hotbed.sdk.async_sandbox_files import AsyncSandboxFiles
from hotbed.sdk.sandbox_files import SandboxFiles


def test_the_faces_have_the_same_methods() -> None:
    """By name and by what they take."""
    blocking, asynchronous = (
        {name: list(inspect.signature(member).parameters) for name, member in vars(face).items() if callable(member)}
        for face in (SandboxFiles, AsyncSandboxFiles)
    )

    assert blocking == asynchronous
