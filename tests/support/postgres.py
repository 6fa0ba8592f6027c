"""A PostgreSQL of the test run's own: Debian's programs, a directory that is thrown away, a Unix socket and no port.

PostgreSQL refuses to run as root, so as root it runs as the user that Debian's package made.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

USER = "postgres"
WHERE = Path("/usr/lib/postgresql")
OPTIONS = ("fsync=off", "full_page_writes=off", "max_connections=100", "listen_addresses=", "autovacuum=off")


class Postgres:
    """A running server."""

    def __init__(self, programs: Path, directory: Path, user: str | None) -> None:
        self.programs = programs
        self.directory = directory
        self._as_user: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if user else {}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        """The DSN of an empty database, whose collation is not the bytes' own where the host has another."""
        name = f"hotbed_{next(self._numbers)}"
        self.call("createdb", "-h", str(self.directory), "-U", "hotbed", name)
        return f"postgresql://hotbed@/{name}?host={self.directory}"

    def start(self) -> None:
        """Start serving. It ends with this process, also when this process is killed."""
        settings = (*OPTIONS, f"unix_socket_directories={self.directory}")
        options = [word for setting in settings for word in ("-c", setting)]
        argv = ["setpriv", "--pdeathsig", "QUIT", str(self.programs / "postgres"), "-D", str(self.directory / "data")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user
            )
        deadline = time.monotonic() + 30
        while not self.is_ready():
            assert self._process.poll() is None and time.monotonic() < deadline, (self.directory / "log").read_text()
            time.sleep(0.05)

    def is_ready(self) -> bool:
        """Whether it lets somebody in."""
        asked = [str(self.programs / "pg_isready"), "-q", "-h", str(self.directory), "-U", "hotbed"]
        return subprocess.run(asked, check=False).returncode == 0

    def stop(self) -> None:
        """Stop, at once."""
        assert self._process is not None, "it was never started"
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def call(self, program: str, *words: str) -> str:
        """Run one of its programs."""
        done = subprocess.run(
            [str(self.programs / program), *words],
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
            **self._as_user,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"
        output: str = done.stdout
        return output


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server for as long as the block lasts. Its directory has a short name: a socket's path must."""
    directory = Path(tempfile.mkdtemp(prefix="hotbed-pg-", dir="/tmp"))
    user = USER if os.geteuid() == 0 else None
    try:
        if user:
            shutil.chown(directory, user)
        server = Postgres(installed()[-1], directory, user)
        server.call("initdb", "-D", str(directory / "data"), "-A", "trust", "-U", "hotbed", "-E", "UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def missing() -> str | None:
    """Why there can be no server here; None when there can."""
    if not installed():
        return "PostgreSQL is not installed (apt-get install postgresql)"
    if os.geteuid() == 0 and USER not in {entry.pw_name for entry in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no user {USER}"
    return None


def installed() -> list[Path]:
    """Where its programs are, the newest version last."""
    return sorted((path.parent for path in WHERE.glob("*/bin/initdb")), key=lambda path: float(path.parent.name))
