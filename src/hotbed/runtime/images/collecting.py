"""Removing what has not been used for longest, until what is left is within its quota."""

from __future__ import annotations

import logging
from collections.abc import Set
from pathlib import Path

from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store, is_fresh, remove_tree

log = logging.getLogger(__name__)


def collect(store: Store, *, quota_bytes: int, keep: Set[str] = frozenset()) -> int:
    """Remove images, the longest unused first; then layers that no image has. About how many bytes that gave back.

    An image in `keep`, or one of whose layers somebody holds, stays. Blocks; run it beside the event loop.
    """
    store.prepare()
    before = store.size()
    records = [record for _, record in store.records()]
    size = before
    while size > quota_bytes and (oldest := _first_free(store, records, keep)) is not None:
        records.remove(oldest)
        store.forget(oldest)
        log.info("event=image_removed image=%s source=%s", oldest.digest, oldest.source)
        _remove_orphans(store, records)
        size = store.size()
    _remove_orphans(store, records)
    _clear_downloads(store, everything=size > quota_bytes)
    return before - store.size()


def _first_free(store: Store, records: list[ImageRecord], keep: Set[str]) -> ImageRecord | None:
    for record in records:
        if record.digest not in keep and not any(map(store.is_held, (*record.layers, *record.over))):
            return record
    return None


def _remove_orphans(store: Store, records: list[ImageRecord]) -> None:
    wanted = {key for record in records for key in (*record.layers, *record.over)}
    for key in store.layers():
        if key not in wanted and not store.is_fresh(key):
            store.remove_layer(key)


def _clear_downloads(store: Store, *, everything: bool) -> None:
    """Remove what nobody fetches any more: what has been left for an hour, or all of it."""
    for path in Path(store.downloads).iterdir():
        if not store.turns.is_taken(path.name) and (everything or not is_fresh(path)):
            remove_tree(path)
