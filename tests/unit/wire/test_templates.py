"""Template requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.templates import CreateTemplate, ExpectSandboxes, Ready


def test_a_template_needs_a_name() -> None:
    """It is how sandboxes ask for it."""
    with pytest.raises(InvalidRequest, match="name"):
        CreateTemplate(name="")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Ready(cmd="true", ports=("80",)), "'80', which is no port"),  # type: ignore[arg-type]  # what a user gives
        (lambda: Ready(http="http://localhost:99999/"), "has no such port"),
        (lambda: Ready(cmd="true", timeout_s="9"), "timeout_s must be"),  # type: ignore[arg-type]  # what a user gives
        (lambda: CreateTemplate(name="a", setup=(3,)), "setup holds 3, which is no text"),  # type: ignore[arg-type]  # what a user gives
        (lambda: CreateTemplate(name="a", width="2"), "width must be"),  # type: ignore[arg-type]  # what a user gives
        (lambda: CreateTemplate(name="a", ready={"cmd": "true"}), "ready is"),  # type: ignore[arg-type]  # what a user gives
        (lambda: ExpectSandboxes(width="x"), "width must be"),  # type: ignore[arg-type]  # what a user gives
    ],
)
def test_what_has_another_type_is_named(make: Callable[[], object], said: str) -> None:
    """A recipe's file and a user's call are not checked by anybody before."""
    with pytest.raises(InvalidRequest, match=said):
        make()
