"""Which recordings the broker has, and for which sandboxes: each is sent once, and forgotten with the last of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hotbed.runtime.link import Link


class Shelf:
    """`read` gives a recording's answers by their keys; `keep` gets each new one."""

    def __init__(self) -> None:
        self.read: Callable[[str], Iterable[tuple[str, bytes]]] = lambda _: ()
        self.keep: Callable[[str, str, bytes], None] = lambda *_: None
        self._users: dict[str, set[int]] = {}

    def lend(self, link: Link, box_id: int, name: str) -> None:
        """A sandbox is to be answered from this recording, if any is named."""
        if name and name not in self._users:
            link.post({"op": "recording", "name": name})
            for key, reply in self.read(name):
                link.post({"op": "recorded", "name": name, "key": key}, reply)
        if name:
            self._users.setdefault(name, set()).add(box_id)

    def take_back(self, link: Link, box_id: int) -> None:
        """A sandbox has ended."""
        for name, users in tuple(self._users.items()):
            users.discard(box_id)
            if not users and self._users.pop(name) is users:
                link.post({"op": "forget", "name": name})

    def lose(self) -> None:
        """The broker is gone, and with it what it had."""
        self._users.clear()
