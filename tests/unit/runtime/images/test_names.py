"""What may be left out of an image's name."""

from __future__ import annotations

import pytest

from hotbed.runtime.images import names


@pytest.mark.parametrize(
    ("reference", "host"),
    [("debian:12", "docker.io"), ("a/b", "docker.io"), ("ghcr.io/a/b", "ghcr.io"), ("localhost:1/a", "localhost:1")],
)
def test_the_host_of_a_reference_is_known(reference: str, host: str) -> None:
    """It decides who may fetch from there."""
    assert names.host_of(reference) == host


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("hello", "docker.io/library/hello:latest"),
        ("docker.io/hello:1", "docker.io/library/hello:1"),
        ("me/hello", "docker.io/me/hello:latest"),
        ("localhost:5000/a", "localhost:5000/a:latest"),
        ("ghcr.io/a/b:c", "ghcr.io/a/b:c"),
    ],
)
def test_a_name_is_completed(name: str, whole: str) -> None:
    """With registry, library and tag; what is whole stays so."""
    assert names.whole(name) == whole == names.whole(whole)
