"""The published client's tunnels, over TCP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import Served
from tests.interop.published import Published

CHROMIUM = Path("/usr/lib/chromium/chromium")  # /usr/bin/chromium needs the host's /etc
CLIENT = "client = C.connect(api_key=os.environ['COLLIMATE_API_KEY'])\n"
SERVER = '''
import threading, time, urllib.request, socket
HTTP = "cd /tmp && echo inside > page && (python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &)"
ECHO = """(python3 -c "
import socket, threading
def serve(c):
    while data := c.recv(65536): c.sendall(data)
    c.close()
s = socket.create_server(('127.0.0.1', 7000))
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,)).start()
" >/dev/null 2>&1 &)"""
def get(url):
    for _ in range(200):
        try:
            return urllib.request.urlopen(url, timeout=10).read()
        except OSError:
            time.sleep(0.05)
    raise AssertionError(url)
def echoing(forward):
    """A connection on which the echo answers, once it listens."""
    for _ in range(200):
        sock = socket.create_connection((forward.host, forward.port), 60)
        try:
            sock.sendall(b"before")
            if sock.recv(10) == b"before":
                return sock
        except OSError:
            pass
        sock.close()
        time.sleep(0.05)
    raise AssertionError(forward.port)
'''


def test_a_web_server_inside_is_reached_through_port_forward(published: Published, served: Served) -> None:
    """Each connection has its own mint and its own tunnel."""
    published.run(
        CLIENT
        + SERVER
        + """
with client.session("python") as box:
    box.exec(command=HTTP)
    with box.port_forward(8000) as forward:
        for _ in range(20):
            assert get(forward.url + "/page") == b"inside\\n"
    url = box.connect_url(8000)
    assert "port=8000" in str(url) and "t=" in str(url), url
""",
        **served.as_tenant("acme"),
    )


def test_megabytes_go_both_ways_through_a_tunnel(published: Published, served: Served) -> None:
    """Byte for byte."""
    published.run(
        CLIENT
        + SERVER
        + """
with client.session("python") as box:
    box.exec(command=ECHO)
    with box.port_forward(7000) as forward:
        data = os.urandom(2_000_000)
        sock = echoing(forward)
        threading.Thread(target=sock.sendall, args=(data,)).start()
        got = b""
        while len(got) < len(data):
            got += sock.recv(65536)
        assert got == data
        sock.close()
""",
        **served.as_tenant("acme"),
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_tunnel_survives_the_clients_own_thirty_seconds(published: Published, served: Served) -> None:
    """It leaves a timeout of 30 s on its socket: something must come in that time, though nothing is said inside."""
    published.run(
        CLIENT
        + SERVER
        + """
with client.session("python") as box:
    box.exec(command=ECHO)
    with box.port_forward(7000) as forward:
        sock = echoing(forward)
        time.sleep(34)
        sock.sendall(b"after")
        assert sock.recv(10) == b"after"
""",
        **served.as_tenant("acme"),
    )


def test_what_may_not_be_opened_is_refused_in_its_words(published: Published, served: Served) -> None:
    """A demo key, a port that is none, and a port where nothing listens."""
    published.run(
        CLIENT
        + """
import socket
with client.session("python") as box:
    status, code, text = refused(lambda: C.GatewayClient(os.environ["COLLIMATE_API_KEY"]).connect_url(box.id, 80))
    assert status == 403 and "pro" in text.lower(), text
""",
        **served.as_tenant("tiny"),
    )
    published.run(
        CLIENT
        + """
import socket
with client.session("python") as box, box.port_forward(9) as forward:
    sock = socket.create_connection((forward.host, forward.port), 10)
    assert sock.recv(1) == b""
""",
        **served.as_tenant("acme"),
    )


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
def test_a_real_browser_inside_is_driven_by_cdp_url(published: Published, served: Served) -> None:
    """A client of DevTools takes the address for the browser itself, as Playwright does: here one by hand."""
    published.run(
        CLIENT
        + SERVER
        + f"BROWSER = '(HOME=/tmp {CHROMIUM} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
        + " --remote-debugging-port=9222 --user-data-dir=/tmp/profile about:blank >/dev/null 2>&1 &)'\n"
        + """
from urllib.parse import urlsplit
def upgrade(box):
    for _ in range(300):
        url = urlsplit(box.cdp_url())
        sock = socket.create_connection((url.hostname, url.port), 30)
        sock.sendall((f"GET {url.path}?{url.query} HTTP/1.1\\r\\nHost: {url.netloc}\\r\\nUpgrade: websocket\\r\\n"
                      "Connection: Upgrade\\r\\nSec-WebSocket-Key: wiaFrLsLoqZkGWAXRhVsdg==\\r\\n"
                      "Sec-WebSocket-Version: 13\\r\\n\\r\\n").encode())
        head = b""
        while b"\\r\\n\\r\\n" not in head:
            head += sock.recv(1)
        status = int(head.split()[1])
        if status == 101:
            return sock
        assert status == 502, head
        sock.close()
        time.sleep(0.1)
    raise AssertionError("no browser")
with client.session("python") as box:
    box.exec(command=BROWSER)
    sock = upgrade(box)
    asked = json.dumps({"id": 1, "method": "Browser.getVersion"}).encode()
    sock.sendall(bytes([0x81, 0x80 | len(asked), 0, 0, 0, 0]) + asked)
    said = b""
    while b'"id":1' not in said or b"}}" not in said:
        said += sock.recv(65536)
    assert b"Chrome/" in said, said
""",
        **served.as_tenant("acme"),
    )
