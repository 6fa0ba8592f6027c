"""What a starting node tells who started it."""

from __future__ import annotations

import json
import os

from hotbed.errors import IsolationUnavailable
from hotbed.server.readiness import Readiness


def told(word: str) -> bytes:
    """Everything that arrives on the pipe."""
    reader, writer = os.pipe()
    readiness = Readiness(writer)
    if word == "ready":
        readiness.ready()
    readiness.failed(IsolationUnavailable("no namespaces", hint="sysctl"))
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


def test_only_the_first_word_counts() -> None:
    """A node that fails while it serves has been ready."""
    lines = told("ready").splitlines()

    assert [json.loads(line)["ready"] for line in lines] == [True]


def test_a_failure_travels_as_an_error_body() -> None:
    """So that connect() raises what doctor would say."""
    word = json.loads(told("failed"))

    assert (word["ready"], word["code"], word["hint"]) == (False, "isolation_unavailable", "sysctl")


def test_nobody_needs_to_wait() -> None:
    """`hotbed node` by hand, or a client that gave up."""
    Readiness(None).ready()
    reader, writer = os.pipe()
    os.close(reader)
    Readiness(writer).ready()
