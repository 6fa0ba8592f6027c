"""URLs and sockets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.sdk.addresses import Address, dial, parse_url


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("http://box:8080/", "http://box:8080"),
        ("http://box", "http://box:80"),
        ("https://box/prefix/", "https://box:443/prefix"),
        ("http://[::1]:99", "http://[::1]:99"),
        ("unix:///run/node%20x.sock", "unix:///run/node x.sock"),
    ],
)
def test_url_names_an_address(url: str, written: str) -> None:
    """And an address prints as its URL."""
    assert str(parse_url(url)) == written


@pytest.mark.parametrize("url", ["", "box:8080", "ftp://box", "http://", "http://box:port", "unix://", "http://[::1"])
def test_url_that_names_none_is_refused_with_examples(url: str) -> None:
    """The message quotes it, the hint shows how."""
    with pytest.raises(InvalidRequest, match="unix:///path"):
        parse_url(url)


def test_socket_path_that_the_kernel_cannot_take_is_refused() -> None:
    """With the variable that helps."""
    with pytest.raises(InvalidRequest, match="HOTBED_RUNTIME_DIR"):
        Address(unix_path="/" + "x" * 120)


def test_address_is_one_thing() -> None:
    """A socket or a host."""
    with pytest.raises(InvalidRequest):
        Address(unix_path="/x", host="y")


def test_dial_waits_for_a_full_queue_and_does_not_hang(tmp_path: Path) -> None:
    """A non-blocking connect would fail at once; ours waits as long as it was told."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        with dial(Address(unix_path=path), 1.0) as first, pytest.raises(BlockingIOError):
            dial(Address(unix_path=path), 0.05)

        assert first.gettimeout() == 1.0


def test_dial_of_tcp_sends_at_once() -> None:
    """Small requests must not wait for each other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with dial(parse_url(f"http://127.0.0.1:{port}"), 1.0) as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_dial_reports_a_missing_socket(tmp_path: Path) -> None:
    """As the system does."""
    with pytest.raises(FileNotFoundError):
        dial(Address(unix_path=str(tmp_path / "none")), 1.0)
