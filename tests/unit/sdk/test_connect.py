"""Which node is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hotbed.errors import BoltzUnavailable, Draining, InvalidRequest, NodeUnavailable
from hotbed.sdk import connect as module
from hotbed.sdk.addresses import Address, parse_url
from hotbed.sdk.connect import advice, alink_of, chosen_address, connect, connect_if_running, link_of
from hotbed.sdk.settings import Settings
from tests.unit.sdk.conftest import ScriptedNode, answer, grant, say

Script = Callable[..., ScriptedNode]


def test_arguments_win_over_the_environment() -> None:
    """And the environment over a local node."""
    settings = Settings(url="http://from-env:1")

    assert str(chosen_address(settings, url="http://arg:2", unix_socket=None)) == "http://arg:2"
    assert str(chosen_address(settings, url=None, unix_socket="/x")) == "unix:///x"
    assert str(chosen_address(settings, url=None, unix_socket=None)) == "http://from-env:1"
    assert chosen_address(Settings(), url=None, unix_socket=None) is None


def test_two_addresses_are_one_too_many() -> None:
    """Which one was meant?"""
    with pytest.raises(InvalidRequest, match="one of them"):
        connect("http://x", unix_socket="/y")


def test_node_that_was_named_and_is_not_there_is_reported_at_once(tmp_path: Path) -> None:
    """A local one is never started in its place."""
    with pytest.raises(NodeUnavailable, match="hotbed serve"):
        connect(unix_socket=str(tmp_path / "none"))


def test_key_comes_from_the_environment(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the address may."""
    node = script(grant)
    monkeypatch.setenv("HOTBED_URL", f"unix://{node.path}")
    monkeypatch.setenv("HOTBED_API_KEY", "k")

    with connect() as client:
        assert b"Bearer k" in client.link.headers(leased=False)


def test_a_key_may_come_from_a_file(script: Script) -> None:
    """Which ends in a newline, as `hotbed keys create > key` writes it."""
    node = script(grant)

    with connect(f"unix://{node.path}", api_key=" k\n") as client:
        assert b"Bearer k\r\n" in client.link.headers(leased=False)


@pytest.mark.parametrize("key", ["a\r\nX-Evil: 1", "a\0b", "\N{CYRILLIC SMALL LETTER KA}"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    """It would be another header, or no request at all."""
    with pytest.raises(InvalidRequest, match="ASCII") as refused:
        connect("http://127.0.0.1:1", api_key=key)

    assert key not in str(refused.value)


def test_one_client_serves_all_calls_that_bring_none(node_socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a new one comes when it was closed."""
    monkeypatch.setenv("HOTBED_URL", f"unix://{node_socket}")
    monkeypatch.setattr(module, "_default", None)

    first = link_of(None)
    assert link_of(None) is first
    assert asyncio.run(alink_of(None)) is first
    first.close()
    second = asyncio.run(alink_of(None))

    assert second is not first
    second.close()


def test_local_node_that_is_just_ending_is_replaced(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses the lease, and by the next try it is gone."""
    ending = script(say(answer(b'{"code": "draining", "message": "bye"}', "503 No")))
    fresh = script(grant)
    found = iter([ending.path, fresh.path])
    monkeypatch.setattr(module, "local_node", lambda _: Address(unix_path=next(found)))

    with connect() as client:
        assert client.url.endswith(fresh.path)


def test_local_node_that_always_refuses_is_reported(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own words."""
    refusal = answer(b'{"code": "draining", "message": "bye"}', "503 No")
    node = script(*[say(refusal)] * 5)
    monkeypatch.setattr(module, "local_node", lambda _: Address(unix_path=node.path))

    with pytest.raises(Draining):
        connect()


def test_looking_for_a_node_starts_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hotbed ps` must not."""
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(tmp_path))

    assert connect_if_running() is None


def test_looking_finds_what_runs(node_socket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the runtime directory."""
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(Path(node_socket).parent))
    client = connect_if_running()

    assert client is not None
    client.close()


def test_a_running_node_with_too_few_boltz_slots_is_refused(node_socket: str) -> None:
    """Rather than at the first boltz pool; and nothing of the client is left."""
    with pytest.raises(BoltzUnavailable, match="has 0 Boltz slots, not 2"):
        connect(unix_socket=node_socket, boltz_slots=2)
    with pytest.raises(InvalidRequest, match="whole number"):
        connect(unix_socket=node_socket, boltz_slots=-1)


@pytest.mark.parametrize(
    ("url", "reason", "expected"),
    [
        ("https://h", OSError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"), "SSL_CERT_FILE"),
        ("https://h", OSError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), "begins with http://"),
        ("http://h", ConnectionResetError("the connection ended in the middle of an answer"), "begins with https://"),
        ("http://h", ConnectionRefusedError(), "hotbed serve"),
        ("http://h", OSError("Name or service not known"), "hotbed serve"),
    ],
)
def test_what_is_to_be_done_about_a_node_that_cannot_be_reached_is_said(
    url: str, reason: OSError, expected: str
) -> None:
    """A certificate of one's own is the first thing that a team meets; starting another server is no help there."""
    assert expected in advice(parse_url(url), reason)


def test_client_that_is_none_is_named() -> None:
    """A URL is what many pass first."""
    with pytest.raises(InvalidRequest, match="client is a str, not what connect"):
        link_of("http://localhost:1")  # type: ignore[arg-type]  # the mistake
