"""What has not been used for longest goes first, and what somebody uses does not go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.runtime.images import store as stores
from hotbed.runtime.images.collecting import collect
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store

KEYS = ["sha256:" + digit * 64 for digit in "123"]
SIZE = 1000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two images with a layer of their own each and one that both have; the first was used longest ago."""
    monkeypatch.setattr(stores, "FRESH_S", 0.0)
    found = Store(tmp_path / "s")
    found.prepare()
    for key in KEYS:
        found.commit(found.begin(None), key, {"size": SIZE, "entries": 0, "skipped": {}})
    for number, key in enumerate(KEYS[:2]):
        found.put(ImageRecord(digest=key, source="s", layers=(KEYS[2], key)))
        os.utime(found.home / "images" / f"{key[7:]}.json", (number, number))
    return found


def left(store: Store) -> list[int]:
    """Which layers are left."""
    return sorted(KEYS.index(key) for key in store.layers())


def test_within_the_quota_everything_stays(store: Store) -> None:
    """Nothing is unpacked twice for tidiness."""
    assert collect(store, quota_bytes=3 * SIZE) == 0 and left(store) == [0, 1, 2]


def test_the_longest_unused_image_goes_and_shared_layers_stay(store: Store) -> None:
    """As few as it takes."""
    assert collect(store, quota_bytes=2 * SIZE) == SIZE and left(store) == [1, 2]
    assert collect(store, quota_bytes=0) == 2 * SIZE and left(store) == []


def test_what_is_wanted_or_held_stays(store: Store) -> None:
    """Whatever the quota says."""
    hold = Store(store.home).hold(store.get(KEYS[1]))

    collect(store, quota_bytes=0, keep={KEYS[0]})
    assert left(store) == [0, 1, 2]

    hold.close()
    collect(store, quota_bytes=0, keep={KEYS[0]})
    assert left(store) == [0, 2]


def test_layers_without_an_image_go_once_they_are_not_fresh(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh one may belong to an image in the making."""
    store.forget(store.get(KEYS[0]))
    monkeypatch.setattr(stores, "FRESH_S", 3600.0)
    collect(store, quota_bytes=9 * SIZE)
    assert left(store) == [0, 1, 2]

    monkeypatch.setattr(stores, "FRESH_S", 0.0)
    collect(store, quota_bytes=9 * SIZE)
    assert left(store) == [1, 2]


def test_downloads_go_before_they_fill_the_disk(store: Store) -> None:
    """They can be had again."""
    (store.downloads / "x").mkdir()
    hold = store.hold(store.get(KEYS[0]))

    collect(store, quota_bytes=0)

    assert not list(store.downloads.iterdir())
    hold.close()


def test_downloads_are_kept_for_who_is_at_them_and_then_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody fetches right now does not go; what was left behind goes in the end, quota or not."""
    (store.downloads / "x").mkdir()
    with store.turns.turn("x", int):
        collect(store, quota_bytes=0)
        assert list(store.downloads.iterdir())

    monkeypatch.setattr(stores, "FRESH_S", 3600.0)
    collect(store, quota_bytes=9 * SIZE)
    assert list(store.downloads.iterdir())

    monkeypatch.setattr(stores, "FRESH_S", 0.0)
    collect(store, quota_bytes=9 * SIZE)
    assert not list(store.downloads.iterdir())
