"""The composition root: a node and its routes as one ASGI application, and the published gateway's beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import partial

from starlette.requests import Request
from starlette.routing import BaseRoute, Router, WebSocketRoute
from starlette.routing import Route as AsgiRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hotbed.errors import Error, InvalidRequest, NotFound
from hotbed.node.keys.keyring import Keyring
from hotbed.node.node import Node
from hotbed.node.once import Once
from hotbed.node.tenants import Tenants
from hotbed.server.admission import admit
from hotbed.server.audit import audited
from hotbed.server.door import Door
from hotbed.server.errors import error_response
from hotbed.server.operation import Handler, Operation, drain
from hotbed.server.published import json_object, refusing
from hotbed.server.routes import (
    accounts,
    catalog,
    daemon,
    egress,
    execs,
    files,
    grading,
    jobs,
    leases,
    ledger,
    live,
    pools,
    processes,
    sandboxes,
    snapshots,
    templates,
    tunnels,
)
from hotbed.server.routes import gateway as gateways
from hotbed.server.routes import node as nodes
from hotbed.server.sockets import SocketHandler, SocketOperation, refuse_socket
from hotbed.server.tenancy import admit_published
from hotbed.wire import collimate, routes
from hotbed.wire.processes import PROCESS_SOCKET
from hotbed.wire.routes import Route
from hotbed.wire.tunnels import CONNECT_SOCKET

HANDLERS: tuple[tuple[Route, Handler], ...] = (
    (routes.ROLLOUT, execs.rollout),
    (routes.EXEC, execs.run_in_sandbox),
    (routes.GET_EGRESS, egress.get),
    (routes.CHANGE_EGRESS, egress.change),
    (routes.LIST_EGRESS, egress.listing),
    (routes.GRADE, grading.grade),
    (routes.LIST_ROLLOUTS, ledger.listing),
    (routes.SHOW_ROLLOUT, ledger.show),
    (routes.REPLAY, ledger.replay),
    (routes.REPLAY_GROUP, ledger.replay_group),
    (routes.CREATE_SANDBOX, sandboxes.create),
    (routes.DELETE_SANDBOXES, sandboxes.delete_many),
    (routes.LIST_SANDBOXES, sandboxes.listing),
    (routes.GET_SANDBOX, sandboxes.get),
    (routes.DELETE_SANDBOX, sandboxes.delete),
    (routes.FORK_SANDBOX, live.fork),
    (routes.SNAPSHOT_SANDBOX, live.snapshot),
    (routes.SUSPEND_SANDBOX, live.suspend),
    (routes.RESUME_SANDBOX, live.resume),
    (routes.START_JOB, jobs.start),
    (routes.LIST_JOBS, jobs.listing),
    (routes.GET_JOB, jobs.get),
    (routes.DELETE_JOB, jobs.delete),
    (routes.JOB_OUTPUT, jobs.output),
    (routes.SIGNAL_JOB, jobs.signal),
    (routes.CONNECT_URL, tunnels.connect_url),
    (routes.PUT_FILE, files.put_file),
    (routes.GET_FILE, files.get_file),
    (routes.HEAD_FILE, files.head_file),
    (routes.FILE_OPERATION, files.file_operation),
    (routes.PUT_TREE, files.put_tree),
    (routes.GET_TREE, files.get_tree),
    (routes.CREATE_TEMPLATE, templates.create),
    (routes.LIST_TEMPLATES, templates.listing),
    (routes.GET_TEMPLATE, templates.get),
    (routes.DELETE_TEMPLATE, templates.delete),
    (routes.EXPECT_SANDBOXES, templates.expect),
    (routes.LIST_IMAGES, templates.images),
    (routes.GET_ENV_DIR, pools.get_env_dir),
    (routes.PUT_ENV_DIR, pools.put_env_dir),
    (routes.CREATE_POOL, pools.create),
    (routes.LIST_POOLS, pools.listing),
    (routes.GET_POOL, pools.get),
    (routes.DELETE_POOL, pools.delete),
    (routes.END_WORKERS, pools.end_workers),
    (routes.RECORD_EPISODES, pools.record),
    (routes.EXCHANGE, pools.exchange),
    (routes.WORKER_OUTPUT, pools.output),
    (routes.TAKE_SNAPSHOT, snapshots.take),
    (routes.RESTORE_WORKERS, snapshots.restore),
    (routes.FORK_WORKER, snapshots.fork),
    (routes.LIST_SNAPSHOTS, snapshots.listing),
    (routes.DELETE_SNAPSHOT, snapshots.delete),
    (routes.HEALTH, nodes.health),
    (routes.CAPABILITIES, nodes.capabilities),
    (routes.STATS, nodes.stats),
    (routes.METRICS, nodes.metrics),
    (routes.USAGE, accounts.usage),
    (routes.AUDIT, accounts.audit),
    (routes.OPENAPI, nodes.openapi),
    (routes.HOLD_LEASE, leases.hold),
    (routes.RELEASE_LEASE, leases.release),
)
SOCKETS: tuple[tuple[str, SocketHandler], ...] = (
    (PROCESS_SOCKET, processes.process),
    (CONNECT_SOCKET, tunnels.connect),
)
WATCHED = frozenset({routes.ROLLOUT.name, routes.EXEC.name})
_OFTEN = (  # looked up first, for a router tries one path after the other
    "/v1/rollouts",
    "/v1/sandboxes",
    "/v1/sandboxes/{id}/exec",
    "/v1/sandboxes/delete",
    "/v1/sandboxes/{id}",
    "/v1/sessions",
    "/v1/sessions/{id}/exec",
    "/v1/sessions/{id}",
)


# A group's name is its client's: `run7/step3` comes percent-encoded, and is decoded before paths are looked at.
_WITH_SLASHES = {routes.REPLAY_GROUP.path: routes.REPLAY_GROUP.path.replace("{id}", "{id:path}")}


def make_app(node: Node) -> ASGIApp:
    """The application of one node. The node is started and closed by who made it."""
    by_path: dict[str, dict[str, Operation]] = {}
    once: Once[bytes] = Once(node.nursery, len)
    for route, handler in HANDLERS:
        watched = route.name in WATCHED
        operation = Operation(route, audited(route, handler), node, admit=admit, watched=watched, once=once)
        by_path.setdefault(route.path, {})[route.method] = operation
    published = partial(Operation, node=node, admit=admit_published, decode=json_object, once=once)
    for route, handler, watched in daemon.HANDLERS:
        operation = published(route, audited(route, handler), watched=watched, refuse=daemon.refuse)
        by_path.setdefault(route.path, {})[route.method] = operation
    return router(by_path, SOCKETS, node, default=unknown_path)


def make_gateway(node: Node, own: ASGIApp) -> ASGIApp:
    """What a published gateway client is served: its own paths in its words, and everything else in ours."""
    refuse = refusing(collimate.GATEWAY_CODES, collimate.SANDBOX)
    by_path: dict[str, dict[str, Operation]] = {}
    once: Once[bytes] = Once(node.nursery, len)
    published = partial(Operation, node=node, admit=admit_published, decode=json_object, once=once)
    for route, handler, watched in (*gateways.HANDLERS, *catalog.HANDLERS):
        operation = published(route, audited(route, handler), watched=watched, refuse=refuse)
        by_path.setdefault(route.path, {})[route.method] = operation
    return router(by_path, (), node, default=own)


def make_door(node: Node, own: ASGIApp, keyring: Keyring | None, tenants: Tenants) -> ASGIApp:
    """The application of a TCP listener."""
    return Door(keyring, tenants, own=own, gateway=make_gateway(node, own), is_draining=lambda: node.draining)


def router(
    by_path: dict[str, dict[str, Operation]],
    sockets: Iterable[tuple[str, SocketHandler]],
    node: Node,
    *,
    default: ASGIApp,
) -> ASGIApp:
    """The operations as one application."""
    served = {path: Methods(methods) for path, methods in by_path.items()}
    asgi_routes: list[BaseRoute] = [
        AsgiRoute(_WITH_SLASHES.get(path, path), methods) for path, methods in served.items()
    ]
    asgi_routes += [WebSocketRoute(path, SocketOperation(handler, node)) for path, handler in sockets]
    rest = Router(asgi_routes, redirect_slashes=False, default=default)
    return Lookup({path: served[path] for path in _OFTEN if path in served}, rest)


class Lookup:
    """Paths that are found without trying patterns: whole ones, and those whose third word is an id."""

    def __init__(self, paths: dict[str, Methods], rest: ASGIApp) -> None:
        self._whole = {path: methods for path, methods in paths.items() if "{" not in path}
        self._named = {path: methods for path, methods in paths.items() if "{" in path}
        self._rest = rest

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        app: ASGIApp = self._rest
        if scope["type"] == "http":
            app = self._whole.get(scope["path"]) or self._find(scope) or app
        return app(scope, receive, send)

    def _find(self, scope: Scope) -> Methods | None:
        words = scope["path"].split("/", 5)
        if len(words) < 4 or not words[3]:
            return None
        name, words[3] = words[3], "{id}"
        methods = self._named.get("/".join(words))
        if methods is not None:
            scope["path_params"] = {"id": name}
        return methods


class Methods:
    """The operations of one path."""

    def __init__(self, operations: dict[str, Operation]) -> None:
        self._operations = operations

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        operation = self._operations.get(scope["method"])
        return operation(scope, receive, send) if operation is not None else self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = ", ".join(sorted(self._operations))
        refusal = InvalidRequest(f"{scope['method']} is not possible here", hint=f"possible: {allowed}")
        response = error_response(refusal)
        response.status_code = 405
        response.headers["allow"] = allowed
        await drain(Request(scope, receive))
        await response(scope, receive, send)


async def unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    """Nothing is served at this path."""
    if scope["type"] == "websocket":
        return await refuse_socket(scope, receive, send)
    if scope["type"] != "http":
        raise Error(f"this server does not speak {scope['type']}")
    refusal = NotFound(f"nothing is served at {scope['path'][:128]!r}", hint="the paths are in docs/reference/http.md")
    await drain(Request(scope, receive))
    await error_response(refusal)(scope, receive, send)
