"""hotbed serve."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli.commands import serve
from hotbed.cli.main import NODE, USAGE
from hotbed.errors import Unauthorized
from hotbed.sdk.connect import connect
from hotbed.server import settings
from tests.interop.published import free_port

pytestmark = pytest.mark.slow  # each test starts a process


@contextmanager
def serving(tmp_path: Path, *argv: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """`hotbed serve` with a home of its own, and what it said when it was ready or could not be."""
    reader, writer = os.pipe()
    words = [sys.executable, "-m", "hotbed.cli.main", "serve", "--uds", str(tmp_path / "n.sock"), "--backend", "fake"]
    process = subprocess.Popen(
        [*words, *argv, "--ready-fd", str(writer)],
        pass_fds=[writer],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOTBED_HOME": str(tmp_path / "home"), "HOTBED_RUNTIME_DIR": str(tmp_path)},
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as ready:
            yield process, json.loads(ready.readline())
    finally:
        process.kill()
        process.wait(10)


def make_key(tmp_path: Path) -> str:
    """A key, made by the command line."""
    words = [sys.executable, "-m", "hotbed.cli.main", "keys", "create", "--tenant", "acme"]
    env = {**os.environ, "HOTBED_HOME": str(tmp_path / "home")}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=env).stdout.strip()


def test_it_serves_both_listeners_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """The Unix socket without a key, TCP with one, from the moment that one is made."""
    port = free_port()
    with serving(tmp_path, "--port", str(port)) as (process, word):
        assert word["ready"] is True
        url = f"http://127.0.0.1:{port}"
        with connect(url) as client:
            assert client.health().status == "ok"
        key = make_key(tmp_path)
        with connect(url, api_key=key) as client:
            assert client.health().max_inflight <= 256
        with pytest.raises(Unauthorized):
            connect(url)
        with connect(unix_socket=str(tmp_path / "n.sock")) as client:
            assert client.health().sessions == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_port_in_use_is_trouble_that_may_pass(tmp_path: Path) -> None:
    """A service manager tries again after 3, and not after 2."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        with serving(tmp_path, "--port", str(other.getsockname()[1])) as (process, word):
            assert (word["ready"], "already in use" in word["message"]) == (False, True)
            assert process.wait(10) == NODE


def test_another_address_needs_tls_and_keys(tmp_path: Path) -> None:
    """Each refusal says what is missing, before anything listens."""
    here = ("--host", "0.0.0.0", "--port", str(free_port()))
    with serving(tmp_path, *here) as (process, word):
        assert (word["ready"], "without TLS" in word["message"]) == (False, True)
        assert process.wait(10) == USAGE
    cert, key = certificate(tmp_path)
    tls = ("--tls-cert", cert, "--tls-key", key)
    with serving(tmp_path, *here, *tls) as (process, word):
        assert (word["ready"], "no key was ever made" in word["message"]) == (False, True)
        assert process.wait(10) == USAGE
    make_key(tmp_path)
    with serving(tmp_path, *here, *tls) as (_, word):
        assert word["ready"] is True
    with serving(tmp_path, *here, "--insecure") as (_, word):
        assert word["ready"] is True


def test_tls_is_served_on_tcp_alone(tmp_path: Path) -> None:
    """The Unix socket needs none. What is no certificate is refused."""
    import ssl

    cert, key = certificate(tmp_path)
    port = free_port()
    with serving(tmp_path, "--port", str(port), "--tls-cert", cert, "--tls-key", key):
        connection = http.client.HTTPSConnection("localhost", port, context=ssl.create_default_context(cafile=cert))
        connection.request("GET", "/v1/health")
        assert connection.getresponse().status == 200
        connection.close()
        with connect(unix_socket=str(tmp_path / "n.sock")) as client:
            assert client.health().status == "ok"
    with serving(tmp_path, "--port", str(port), "--tls-cert", key, "--tls-key", key) as (process, word):
        assert (word["ready"], "TLS" in word["message"]) == (False, True)
        assert process.wait(10) == USAGE


def certificate(tmp_path: Path) -> tuple[str, str]:
    """A self-signed certificate for localhost, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    what = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, "req", *what, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return str(cert), str(key)


def test_its_port_is_the_settings_own() -> None:
    """The help text cannot import it."""
    assert serve.PORT == settings.SHARED_PORT
