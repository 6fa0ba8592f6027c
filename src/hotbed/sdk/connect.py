"""Finding a node: the arguments, else HOTBED_URL, else this user's running node, else one started now.

Where no client is given, the SDK uses one per process, made on first use: a child that forks off makes its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from dataclasses import replace

from hotbed.errors import BoltzUnavailable, Draining, InvalidRequest, NodeUnavailable
from hotbed.sdk import calls
from hotbed.sdk.addresses import Address, parse_url
from hotbed.sdk.client import AnyClient, AsyncClient, Client
from hotbed.sdk.embedded import local_node, running_node
from hotbed.sdk.settings import Settings
from hotbed.sdk.transport import Link, close_all
from hotbed.wire.checks import require

_LOCAL_TRIES = 5


def connect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    unix_socket: str | None = None,
    boltz_slots: int | None = None,
) -> Client:
    """A client of the node that the arguments or the environment name, or of this user's own, started if need be.

    The client holds a lease: what is made through it ends when it is closed or its process ends. A node that is started
    gets `boltz_slots`. Raises `NodeUnavailable` when no node answers, `IsolationUnavailable` when this host cannot run
    one, and `BoltzUnavailable` when the one that runs has fewer slots.
    """
    return Client(_open_link(url, api_key=api_key, unix_socket=unix_socket, boltz_slots=boltz_slots))


def connect_if_running() -> Client | None:
    """A client of the node that `connect` would find; None where it would have to start one."""
    settings = Settings.from_environment()
    address = chosen_address(settings, url=None, unix_socket=None) or running_node(settings)
    return Client(_hold(Link(address, api_key=_key(settings.api_key)))) if address is not None else None


async def aconnect(
    url: str | None = None,
    *,
    api_key: str | None = None,
    unix_socket: str | None = None,
    boltz_slots: int | None = None,
) -> AsyncClient:
    """`connect` for asyncio."""
    import asyncio  # not for those who do not use it

    link = await asyncio.to_thread(_open_link, url, api_key=api_key, unix_socket=unix_socket, boltz_slots=boltz_slots)
    return AsyncClient(link)


def _key(text: str | None) -> str | None:
    """A key as a header can carry it: one that was read from a file ends in a newline."""
    key = (text or "").strip()
    require(
        key.isascii() and key.isprintable(),
        "the API key is not one line of ASCII text",
        hint="what `hotbed keys create` printed is one: in api_key=, or HOTBED_API_KEY",
    )
    return key or None


def _open_link(
    url: str | None, *, api_key: str | None, unix_socket: str | None, boltz_slots: int | None = None
) -> Link:
    wanted = boltz_slots or 0
    if type(wanted) is not int or wanted < 0:
        raise InvalidRequest(f"boltz_slots must be a whole number, not {boltz_slots!r}")
    settings = replace(Settings.from_environment(), boltz_slots=wanted)
    address = chosen_address(settings, url=url, unix_socket=unix_socket)
    key = _key(api_key or settings.api_key)
    atexit.register(close_all)
    link = (
        _hold(Link(address, api_key=key, traceparent=settings.traceparent))
        if address is not None
        else _hold_local(settings, key)
    )
    if wanted:
        _check_slots(link, wanted)
    return link


def _check_slots(link: Link, wanted: int) -> None:
    """Refuse a node that was started with fewer Boltz slots."""
    found = link.send(calls.stats()).get("node", {}).get("boltz_slots", 0)
    if found < wanted:
        link.close()
        raise BoltzUnavailable(
            f"the node at {link.address} has {found} Boltz slots, not {wanted}",
            hint="it was started by somebody else: end its clients first, or `hotbed node --boltz-slots K`",
        )


def chosen_address(settings: Settings, *, url: str | None, unix_socket: str | None) -> Address | None:
    """The node that was named; None leaves it to this user's own."""
    if url is not None and unix_socket is not None:
        raise InvalidRequest("url and unix_socket were given together", hint="give one of them")
    if unix_socket is not None:
        return Address(unix_path=os.path.abspath(unix_socket))
    named = url if url is not None else settings.url
    return parse_url(named) if named is not None else None


def _hold(link: Link) -> Link:
    """The link with its lease taken, so that a node that is not there is reported now."""
    try:
        link.hold()
    except OSError as reason:
        link.close()
        raise NodeUnavailable(
            f"no node answers at {link.address}: {reason.strerror or reason}",
            hint=advice(link.address, reason),
        ) from reason
    except BaseException:
        link.close()
        raise
    return link


def advice(address: Address, reason: OSError) -> str:
    """What to do about a node that could not be reached."""
    said = str(reason)
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return "SSL_CERT_FILE names a file with its certificate, or with that of the authority that signed it"
    if address.tls and "WRONG_VERSION_NUMBER" in said:
        return "if it serves no TLS, its address begins with http://"
    if not address.tls and isinstance(reason, ConnectionError) and not isinstance(reason, ConnectionRefusedError):
        return "if it serves TLS, its address begins with https://"
    return "start it with `hotbed serve`, or leave HOTBED_URL and the arguments out to use a local one"


def _hold_local(settings: Settings, api_key: str | None) -> Link:
    """A lease on this user's node. One that is just ending is waited out and replaced."""
    for last in (False,) * (_LOCAL_TRIES - 1) + (True,):
        link = Link(
            local_node(settings),
            api_key=api_key,
            traceparent=settings.traceparent,
            revive=lambda: local_node(settings),
        )
        try:
            return _hold(link)
        except (NodeUnavailable, Draining):
            if last:
                raise
    raise AssertionError("the last try returns or raises")


_default_lock = threading.Lock()
_default: Client | None = None


def link_of(client: AnyClient | None) -> Link:
    """The link behind a client, or behind this process's own when none is given."""
    if client is not None:
        if not isinstance(getattr(client, "link", None), Link):
            raise InvalidRequest(
                f"client is a {type(client).__name__}, not what connect() returns",
                hint="client=hotbed.connect(), or leave it out",
            )
        return client.link
    global _default
    with _default_lock:
        if _default is None or _default.link.closed:
            _default = connect()
        return _default.link


async def alink_of(client: AnyClient | None) -> Link:
    """`link_of` for asyncio: making the first client may take a moment."""
    if client is not None or (_default is not None and not _default.link.closed):
        return link_of(client)
    import asyncio  # not for those who do not use it

    return await asyncio.to_thread(link_of, None)


def _unlock_in_child() -> None:
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_in_child)
