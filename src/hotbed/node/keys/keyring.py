"""The keys of a running server: in memory, and looked at again when another process has changed them.

A file is looked at by whoever needs a key, which takes microseconds. A database that is elsewhere is looked at by a
thread, as often, so that nobody waits for it; while it does not answer, the keys that are known go on being good, for
`STALE_S` at most.

A key is found by its id, which is no secret, and compared by its digest in constant time. A text that is no key, an id
that nobody has and a wrong secret take the same steps and get the same answer.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable

from hotbed.errors import Error, NodeUnavailable, Unauthorized
from hotbed.node.keys.key import Key, digest_of, parse
from hotbed.node.keys.store import KeyStore

LOOK_EVERY_S = 0.2  # how long a revoked key may still be good
STALE_S = 60.0
_NOBODY = ("", "0" * 64)

log = logging.getLogger(__name__)


class Keyring:
    """Finds keys."""

    def __init__(self, store: KeyStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._keys: dict[str, tuple[Key, bytes]] = {}
        self._version = (-1, -1)
        self._looked_s = float("-inf")
        self._nothing = digest_of("", store.pepper)
        self._over = threading.Event()
        if store.is_elsewhere:
            self._read()
            threading.Thread(target=self._watch, name="hotbed-keys", daemon=True).start()

    @property
    def needed(self) -> bool:
        """Whether requests need a key: from the first one ever made, also when all are revoked."""
        self._look()
        return bool(self._keys)

    def find(self, text: str) -> Key:
        """The key that a client showed. Raises `Unauthorized`."""
        self._look()
        key_id, secret = parse(text) or _NOBODY
        key, digest = self._keys.get(key_id, (None, self._nothing))
        good = hmac.compare_digest(digest, digest_of(secret, self._store.pepper))
        if key is None or not good:
            raise Unauthorized("that key is not one of this server's", hint="`hotbed keys create` makes one")
        if (trouble := key.trouble(time.time())) is not None:
            raise Unauthorized(f"key {key.id} is no longer good: {trouble}", hint="ask for a new one")
        return key

    def get(self, key_id: str) -> Key:
        """A key that was shown before, if it is still good. Raises `Unauthorized`."""
        self._look()
        key, _ = self._keys.get(key_id, (None, b""))
        if key is None or key.trouble(time.time()) is not None:
            raise Unauthorized("that key is no longer good", hint="sign in with another")
        return key

    def all(self) -> tuple[Key, ...]:
        """Every key that was ever made, oldest first."""
        self._look()
        return tuple(key for key, _ in self._keys.values())

    def close(self) -> None:
        """Close the database."""
        self._over.set()
        self._store.close()

    def _look(self) -> None:
        now = self._clock()
        if self._store.is_elsewhere:
            if now - self._looked_s > STALE_S:
                raise NodeUnavailable("the database that holds the keys does not answer", retry_after_s=5)
        elif now - self._looked_s >= LOOK_EVERY_S:
            self._read()

    def _read(self) -> None:
        version = self._store.version()
        if version != self._version:
            self._store.check_pepper()
            self._keys = {key.id: (key, digest) for key, digest in self._store.all()}
            self._version = version
        self._looked_s = self._clock()

    def _watch(self) -> None:
        answers = True
        while not self._over.wait(LOOK_EVERY_S):
            try:
                self._read()
            except Error as error:
                if answers and not self._over.is_set():
                    log.error("event=keys_unreachable error=%r", error.message)
                answers = False
            else:
                answers = True
