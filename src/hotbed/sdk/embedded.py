"""Starting this user's node when nothing else answers.

The node is the same server that `hotbed node` runs, on a Unix socket in this user's runtime directory. It is started by
`posix_spawn` (a trainer may be large and have many threads: it is not forked), detaches itself, writes to a log beside
its socket, and ends soon after its last lease. Clients that race take turns on a lock; the losers find the socket.

Readiness comes through a pipe whose write end only the node holds: one line of JSON, {"ready": true} or an error body;
its end without a line means that the node died, and then the log's last lines say why.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hotbed.errors import Error, NodeUnavailable
from hotbed.sdk.addresses import Address, dial
from hotbed.sdk.settings import Settings, child_environment

START_TIMEOUT_S = 60.0
_LOG_TAIL = 600
_READY_LIMIT = 64 << 10
# The child finds our package where this process found it, after everything else, and nothing in the working directory.
_BOOT = (
    "import sys; sys.path[0:1] = []; root = sys.argv.pop(1); root in sys.path or sys.path.append(root); "
    "from hotbed.cli.main import main; sys.exit(main())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """Where this user's node lives."""

    directory: str

    @property
    def socket(self) -> str:
        """The node answers here."""
        return os.path.join(self.directory, "node.sock")

    @property
    def log(self) -> str:
        """What an embedded node has to say."""
        return os.path.join(self.directory, "node.log")

    @property
    def start_lock(self) -> str:
        """Held by the client that starts the node."""
        return os.path.join(self.directory, "start.lock")

    def prepare(self) -> None:
        """Make the directory, or refuse one that is not only ours: whoever owns the socket answers for the node."""
        try:
            os.makedirs(os.path.dirname(self.directory) or "/", exist_ok=True)
            try:
                os.mkdir(self.directory, 0o700)
            except FileExistsError:
                pass
            found = os.lstat(self.directory)
        except OSError as reason:
            raise NodeUnavailable(
                f"the runtime directory {self.directory} cannot be made: {reason.strerror}",
                hint="set HOTBED_RUNTIME_DIR to a directory of yours",
            ) from reason
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise NodeUnavailable(
                f"{self.directory} is not a directory of user {os.getuid()} alone (mode 0700)",
                hint="remove it, or set HOTBED_RUNTIME_DIR to another directory",
            )


def local_node(settings: Settings) -> Address:
    """The address of this user's node, started if there is none."""
    place = NodePlace(directory=os.path.abspath(settings.node_dir))
    address = Address(unix_path=place.socket)
    if answers(address):
        return address
    place.prepare()
    with _turn(place.start_lock):
        if not answers(address):
            _start_unless_another(place, address, settings.boltz_slots)
    return address


def _start_unless_another(place: NodePlace, address: Address, boltz_slots: int) -> None:
    """Start a node; a `hotbed node` that was starting at the same time, and was faster, does as well."""
    try:
        start_node(place, boltz_slots=boltz_slots)
    except NodeUnavailable:
        if not answers(address):
            raise


def running_node(settings: Settings) -> Address | None:
    """The address of this user's node, if one runs."""
    address = Address(unix_path=os.path.abspath(settings.node_socket))
    return address if answers(address) else None


def answers(address: Address) -> bool:
    """Whether somebody of ours listens there."""
    assert address.unix_path is not None
    try:
        if os.lstat(address.unix_path).st_uid != os.getuid():
            return False
        dial(address, 5.0).close()
    except OSError:
        return False
    return True


@contextmanager
def _turn(path: str) -> Iterator[None]:
    """Hold a lock file; wait for whoever holds it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def start_node(place: NodePlace, *, boltz_slots: int = 0, home: str | None = None) -> None:
    """Start a node and wait until it serves. Raises what kept it from doing so.

    `home` is where it keeps what it keeps, if not where the environment says.
    """
    if not sys.executable:
        raise NodeUnavailable(
            "no node runs, and none can be started: this Python does not know its own executable",
            hint="start one with `hotbed node`, or set HOTBED_URL",
        )
    ready, theirs = map(_move_up, os.pipe())
    try:
        try:
            pid = _spawn(place, theirs, boltz_slots, home)
        finally:
            os.close(theirs)
        line = _wait_line(ready, START_TIMEOUT_S)
    finally:
        os.close(ready)
    os.waitpid(pid, 0)  # it has detached, or failed: what we started is only the first of its processes
    _check_ready(line, place)


def _spawn(place: NodePlace, ready_fd: int, boltz_slots: int, home: str | None) -> int:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    argv = [sys.executable, "-c", _BOOT, root, "node", "--embedded", "--socket", place.socket, "--ready-fd", "3"]
    argv += ["--boltz-slots", str(boltz_slots)] if boltz_slots else []
    with suppress(FileNotFoundError):
        os.replace(place.log, place.log + ".1")  # what the last one had to say, if it was killed
    log = _move_up(os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    try:
        return os.posix_spawn(
            sys.executable,
            argv,
            child_environment() | ({"HOTBED_HOME": home} if home is not None else {}),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, ready_fd, 3),
            ],
            setsid=True,
            setsigmask=(),
        )
    except OSError as reason:
        raise NodeUnavailable(f"{sys.executable} cannot be started: {reason.strerror}") from reason
    finally:
        os.close(log)


def _move_up(fd: int) -> int:
    """The same file above the numbers that the child's own files get, whatever this process had closed."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(fd)


def _wait_line(ready: int, timeout_s: float) -> bytes | None:
    """What the node wrote: b"" if it ended without a word, None if time ran out."""
    deadline = time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(ready, select.POLLIN)
    line = b""
    while not line.endswith(b"\n") and len(line) < _READY_LIMIT:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return None
        data = os.read(ready, 4096)
        if not data:
            return b""
        line += data
    return line


def _check_ready(line: bytes | None, place: NodePlace) -> None:
    """Raise what a node said instead of being ready."""
    if line is None:
        raise NodeUnavailable(f"the node did not get ready within {START_TIMEOUT_S:g} s", hint=f"its log: {place.log}")
    if not line:
        raise NodeUnavailable(
            f"the node ended while it started: {_last_words(place.log)}", hint=f"its log: {place.log}"
        )
    told = json.loads(line)
    if told.get("ready"):
        return
    hint = told.get("hint")
    raise Error.from_wire(
        str(told.get("code")),
        str(told.get("message")),
        hint=f"{hint}; its log: {place.log}" if hint else f"its log: {place.log}",
    )


def _last_words(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_TAIL))
            text = file.read().decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    return text.rpartition("\n")[2] or "it said nothing"
