"""A node as a process: start, serve, drain, leave nothing.

The order of starting matters. The backend is made before the event loop, because it forks a launcher and a process with
an event loop must not fork. The node starts before anything listens, so that whoever can connect is served. What keeps
it from starting is told to whoever started it, in the words that `hotbed doctor` uses.

It ends on SIGTERM or SIGINT, or, embedded, some time after its last lease: the socket is withdrawn (but for a server,
which says that it drains), running work gets its time, then everything ends. A second signal ends the waiting.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import logging
import os
import resource
import signal
import socket
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from hotbed.dashboard.history import History
from hotbed.dashboard.look import House
from hotbed.dashboard.visitors import Visitors
from hotbed.errors import Error, InvalidRequest
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.lanes import LaneServer
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.writer import Retention
from hotbed.node.node import Node
from hotbed.node.tenants import Tenants, tiers_from
from hotbed.runtime.base import Backend
from hotbed.server.app import make_app, make_door
from hotbed.server.backends import make_backend
from hotbed.server.beside import Beside
from hotbed.server.joining import JoinedHttp
from hotbed.server.listeners import BACKLOG, SocketOwnership, check_length, listen
from hotbed.server.logs import configure_logs
from hotbed.server.operation import BODY_LIMIT
from hotbed.server.readiness import Readiness
from hotbed.server.recording import Recording
from hotbed.server.settings import Settings, make_home, make_private_dir, notify_socket

KEEP_ALIVE_S = 3600
CLOSE_S = 2
_YOUNG = 20_000  # new objects before they are walked; 128 clients have 12,000 in hand, which need no collector to end

log = logging.getLogger(__name__)


def run(settings: Settings, *, ready_fd: int | None = None) -> None:
    """Serve until told to stop. Raises what keeps it from serving, once whoever waits for it is told."""
    if settings.embedded and os.fork():
        os._exit(0)
    readiness = Readiness(ready_fd, notify_socket())
    try:
        configure_logs(level=settings.log_level, file=settings.log_file, form=settings.log_format)
        if settings.ledger or settings.port:
            make_home(Path(settings.home))
        check_exposure(settings)
        with owned_socket(settings.socket_path, settings) as ownership:
            raise_file_limit()
            backend = make_backend(settings)
            run_loop(serve(settings, backend, ownership, readiness))
    except Error as error:
        log.error("event=cannot_start code=%s message=%r hint=%r", error.code, error.message, error.hint)
        readiness.failed(error)
        raise


@contextmanager
def owned_socket(path: Path | None, settings: Settings) -> Iterator[SocketOwnership | None]:
    """Own the Unix socket's path, if there is one, until the process is done with it."""
    if path is None:
        yield None
        return
    if path.parent == Path(settings.runtime_dir):
        make_private_dir(path.parent)
    check_length(path)
    ownership = SocketOwnership.take(path)
    try:
        yield ownership
    finally:
        ownership.release()


async def serve(settings: Settings, backend: Backend, ownership: SocketOwnership | None, readiness: Readiness) -> None:
    """Start the node, serve until it is time to stop, drain, close."""
    node = Node(backend, settings.policy(), version=package_version(), ledger=open_ledger(settings))
    recording = Recording(node, settings)
    lanes = LaneServer(node.pools, node.nursery, node.waits)
    history = History(node)
    try:
        await node.start(warm=settings.warm)
        if settings.lanes_path is not None:
            lanes.listen(settings.lanes_path)
        history.start()
        served = servers(node, settings, listen(settings), history)
        loop = asyncio.get_running_loop()
        serving = loop.create_task(serve_all(served))
        gc.collect()
        gc.freeze()  # what lives now lives on: no collection walks it again
        gc.set_threshold(_YOUNG)
        readiness.ready()
        log.info("event=serving addresses=%s", ",".join(settings.addresses))
        await until_stopped(node, settings, ownership, serving)
        for server, _ in served:
            server.should_exit = True
        await serving
    finally:
        history.stop()
        lanes.close()
        await node.close()
        recording.close()


def open_ledger(settings: Settings) -> Ledger | None:
    """The node's memory, unless it is told to keep none."""
    if not settings.ledger:
        return None
    retention = Retention(days=settings.ledger_days, max_bytes=settings.ledger_mib << 20)
    return Ledger(Path(settings.home), retention=retention, dsn=settings.database)


def check_exposure(settings: Settings) -> None:
    """Refuse a port that other machines reach while nobody needs a key to use it."""
    if not settings.is_exposed or settings.insecure:
        return
    keyring = open_keyring(settings)
    needed = keyring.needed
    keyring.close()
    if not needed:
        raise InvalidRequest(
            f"whoever reaches {settings.origin} could run anything here: no key was ever made",
            hint="make one with `hotbed keys create`, bind to 127.0.0.1, or say --insecure",
        )


def open_keyring(settings: Settings) -> Keyring:
    """The keys under this node's home."""
    return Keyring(KeyStore(Path(settings.home), settings.database))


def servers(
    node: Node, settings: Settings, listeners: list[socket.socket], history: History
) -> list[tuple[uvicorn.Server, socket.socket]]:
    """One server per listener: who comes by the Unix socket is the node's own user, who comes by TCP has to say."""
    own = make_app(node)
    made: list[tuple[uvicorn.Server, socket.socket]] = []
    for listener in listeners:
        if listener.family == socket.AF_UNIX:
            config = server_config(with_pages(own, settings, node=node, history=history))
        else:
            keyring, tenants = open_keyring(settings), Tenants(tiers_from(settings.tiers))
            door = make_door(node, own, keyring, tenants)
            app = with_pages(door, settings, node=node, history=history, keyring=keyring, tenants=tenants)
            config = server_config(app, ssl_certfile=settings.tls_cert or None, ssl_keyfile=settings.tls_key or None)
        try:
            config.load()
        except OSError as error:  # also what the certificate is not
            raise InvalidRequest(
                f"TLS cannot be served with {settings.tls_cert} and {settings.tls_key}: {error}",
                hint="both are PEM files that the node's user can read: the certificate with what signed it, "
                "and its key without a passphrase",
            ) from None
        made.append((Server(config), listener))
    return made


def with_pages(api: ASGIApp, settings: Settings, *, keyring: Keyring | None = None, **parts: Any) -> ASGIApp:
    """The same with the dashboard beside it, unless the settings leave that out."""
    return Beside(api, House(visitors=Visitors(keyring), keyring=keyring, **parts)) if settings.dashboard else api


async def serve_all(served: list[tuple[uvicorn.Server, socket.socket]]) -> None:
    """Serve until every server was told to stop."""
    await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in served))


def server_config(app: ASGIApp, **tls: Any) -> uvicorn.Config:
    """uvicorn as a library: no logging, signals or lifespan of its own."""
    return uvicorn.Config(
        app,
        interface="asgi3",  # it would not see that: layers hand a request on without a coroutine of their own
        http=JoinedHttp,
        ws="wsproto",
        ws_max_size=BODY_LIMIT,
        ws_ping_interval=None,  # the published client answers pings from the wrong thread
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=CLOSE_S,
        **tls,
    )


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, which raise the signal again after serving."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `until_stopped`."""
        yield


async def until_stopped(
    node: Node, settings: Settings, ownership: SocketOwnership | None, serving: asyncio.Task[None]
) -> None:
    """Wait for a reason to stop, then drain. A second signal cuts the draining short."""
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    reasons: list[Coroutine[Any, Any, Any]] = [signals.get()]
    if settings.embedded:
        reasons.append(node.leases.wait_unused(linger_s=settings.linger_s, first_s=settings.first_lease_s))
    await first_of(*reasons, also=serving)
    if ownership is not None and settings.shared:
        ownership.announce_end()  # its clients are told that it drains, by the socket too
    elif ownership is not None:
        ownership.withdraw()
    await first_of(node.drain(deadline_s=settings.drain_s), signals.get(), also=serving)
    node.discard_all()


async def first_of(*works: Coroutine[Any, Any, Any], also: asyncio.Task[None]) -> None:
    """Wait until one of these has ended, and cancel the others but for `also`."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work) for work in works]
    try:
        await asyncio.wait({*tasks, also}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop, which halves what a request costs."""
    import uvloop

    uvloop.run(main)


def package_version() -> str:
    """Our version as installed."""
    try:
        return importlib.metadata.version("hotbed")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # run from a source tree


def raise_file_limit() -> None:
    """Every sandbox and every client takes descriptors: use all that we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
