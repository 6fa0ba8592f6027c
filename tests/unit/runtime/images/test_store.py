"""A layer is complete or not there; it goes when nobody holds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.errors import NotFound
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store, remove_tree, weight

KEY, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
ABOUT = {"size": 10, "entries": 1, "skipped": {}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty one."""
    found = Store(tmp_path / "images")
    found.prepare()
    return found


def put(store: Store, key: str) -> None:
    """A layer with one file."""
    partial = store.begin(None)
    (partial.path / "tree/f").write_text("x")
    store.commit(partial, key, ABOUT)


def test_a_layer_is_there_once_it_is_complete(store: Store) -> None:
    """Not before."""
    partial = store.begin(None)
    assert not store.has_layer(KEY)

    store.commit(partial, KEY, ABOUT)

    assert store.has_layer(KEY) and store.layer(KEY).is_dir() and store.about(KEY) == ABOUT
    assert store.layers() == [KEY] and store.size() == weight(ABOUT)


def test_the_first_of_two_stays(store: Store) -> None:
    """Two processes may unpack the same at once."""
    put(store, KEY)
    second = store.begin(None)

    store.commit(second, KEY, ABOUT)

    assert (store.layer(KEY) / "f").exists() and not second.path.exists()


def test_what_died_in_the_making_is_removed(store: Store) -> None:
    """And what is still being made is not."""
    dead, living = store.begin(None), store.begin(None)
    os.close(dead.lock)
    os.close(dead.tree)

    Store(store.home).prepare()

    assert not dead.path.exists() and living.path.exists()
    store.discard(living)


def test_an_image_without_its_layers_is_not_there(store: Store) -> None:
    """Nor can it be held."""
    record = ImageRecord(digest=OTHER, source="s", layers=(KEY,))
    store.put(record)
    assert store.find(OTHER) is None
    with pytest.raises(NotFound):
        store.get(OTHER)
    with pytest.raises(NotFound):
        store.hold(record)

    put(store, KEY)

    assert store.get(OTHER) == record and [r for _, r in store.records()] == [record]


def test_a_layer_that_is_held_stays(store: Store) -> None:
    """Also when another process wants it gone."""
    put(store, KEY)
    record = ImageRecord(digest=OTHER, source="s", layers=(KEY,))
    store.put(record)
    hold = store.hold(record)

    assert not Store(store.home).remove_layer(KEY) and store.has_layer(KEY)

    hold.close()
    hold.close()
    assert store.remove_layer(KEY) and not store.has_layer(KEY)


def test_holding_an_image_is_using_it(store: Store) -> None:
    """The order of last use is what collection goes by."""
    put(store, KEY)
    records = [ImageRecord(digest=digest, source="s", layers=(KEY,)) for digest in (KEY, OTHER)]
    for number, record in enumerate(records):
        store.put(record)
        os.utime(store.home / "images" / f"{record.digest[7:]}.json", (number, number))

    store.hold(records[0]).close()

    assert [record.digest for _, record in store.records()] == [OTHER, KEY]
    store.forget(records[1])
    assert [record.digest for _, record in store.records()] == [KEY]


def test_a_tree_is_removed_whatever_its_modes(tmp_path: Path) -> None:
    """And a link is not followed."""
    (tmp_path / "t/a/b").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    os.symlink(tmp_path / "kept", tmp_path / "t/a/b/l")
    (tmp_path / "t/a").chmod(0)

    remove_tree(tmp_path / "t")
    os.symlink(tmp_path / "kept", tmp_path / "l")
    remove_tree(tmp_path / "l")

    assert os.listdir(tmp_path) == ["kept"]
