"""Who exists inside: never the host's root."""

from __future__ import annotations

import pytest

from hotbed.errors import IsolationUnavailable
from hotbed.runtime.linux import identity
from hotbed.runtime.linux.identity import Ids

WHOLE = "         0          0 4294967295\n"
CONTAINER = "0 100000 65536\n"


def test_root_maps_a_range_that_nobody_has() -> None:
    """Kernel settings ask only for the global root user."""
    ids = identity.choose(0, 0, WHOLE)

    assert ids == Ids(uid=identity.FIRST_ID, gid=identity.FIRST_ID, count=identity.COUNT)


def test_ordinary_user_maps_themselves() -> None:
    """The one id that needs no right."""
    assert identity.choose(1001, 100, WHOLE) == Ids(uid=1001, gid=100)


def test_root_of_a_container_uses_what_it_has() -> None:
    """The upper half of its ids, so that its own root stays out."""
    ids = identity.choose(0, 0, CONTAINER)

    assert 0 < ids.uid and ids.uid + ids.count <= 65536


def test_root_with_a_single_id_is_refused() -> None:
    """There is nobody else to be."""
    with pytest.raises(IsolationUnavailable, match="no second user id"):
        identity.choose(0, 0, "0 1000 1\n")


def test_uid_0_cannot_even_be_expressed() -> None:
    """The last line of defence is the type."""
    with pytest.raises(IsolationUnavailable):
        Ids(uid=0, gid=5)
