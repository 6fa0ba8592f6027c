"""Shapes of policies on the wire."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.egress import ChangeEgress
from hotbed.wire.execs import RolloutRequest
from hotbed.wire.sandboxes import CreateSandbox
from hotbed.wire.templates import CreateTemplate


def test_a_bad_policy_is_named_on_both_ends() -> None:
    """Before it travels."""
    for make in (
        lambda bad: ChangeEgress(egress=bad),
        lambda bad: CreateSandbox(template="python", egress=bad),
        lambda bad: RolloutRequest(template="python", code="1", egress=bad),
        lambda bad: CreateTemplate(name="x", egress=bad),
    ):
        with pytest.raises(InvalidRequest, match=r"egress\.allow\[0\]: 'a b'"):
            make({"allow": ["a b"]})


def test_a_template_without_a_network_has_no_policy() -> None:
    """One of the two is meant."""
    with pytest.raises(InvalidRequest, match="egress needs a network"):
        CreateTemplate(name="x", network=False, egress={"mode": "open"})
