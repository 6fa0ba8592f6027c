"""Operations on jobs, ports and groups as values."""

from __future__ import annotations

from hotbed.sdk import job_calls
from hotbed.sdk.calls import ANSWER_TIMEOUT_S
from hotbed.wire.execs import ExecRequest
from hotbed.wire.sandboxes import Selector


def test_waiting_on_the_node_is_allowed_for() -> None:
    """The answer may take as long as was asked for, and some more."""
    assert job_calls.get_job("s", "j", wait_s=30).timeout_s == ANSWER_TIMEOUT_S + 30


def test_a_job_that_is_not_found_is_not_a_sandbox_that_is_gone() -> None:
    """The two are told apart by the node."""
    assert job_calls.start_job("s", ExecRequest(code="1")).sandbox_id == "s"
    assert job_calls.get_job("s", "j").sandbox_id is None


def test_names_in_paths_are_escaped() -> None:
    """Whatever they hold."""
    assert job_calls.get_job("a/b", "c?d").target.startswith("/v1/sandboxes/a%2Fb/jobs/c%3Fd?")


def test_a_bulk_delete_has_its_selector_as_body() -> None:
    """What is not given is left out."""
    assert job_calls.delete_sandboxes(Selector(group="g")).body == b'{"group":"g"}'
