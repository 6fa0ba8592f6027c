"""What is asked of a node about networks, before any I/O has happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from hotbed.sdk.calls import Call, plain, read_as
from hotbed.wire import routes
from hotbed.wire.egress import ChangeEgress, EgressList, EgressState


def change_egress(sandbox_id: str, egress: Mapping[str, Any] | None) -> Call[EgressState]:
    """Hold a living sandbox to another policy."""
    request = ChangeEgress(egress=egress or {})
    return replace(plain(routes.CHANGE_EGRESS, EgressState, body=request, id=sandbox_id), sandbox_id=sandbox_id)


def list_egress(*, limit: int, before: int | None, where: Mapping[str, str]) -> Call[EgressList]:
    """A page of what sandboxes tried on the network, newest first."""
    query = {"limit": limit, **({"before": before} if before is not None else {}), **where}
    return Call(
        method="GET", target=f"{routes.LIST_EGRESS.url()}?{urlencode(query)}", read=partial(read_as, EgressList)
    )
