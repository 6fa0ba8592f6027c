"""Attempts on files: the host's, and what may travel out of a sandbox."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from hotbed.errors import Error, NotAFile
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.selfcheck.bench import Attempt, Bench, code_in, hold, shell_in

_SECRETS = ("/etc/shadow", "/etc/ssh", "/root/.ssh", "/root/.bashrc", "/var/run/docker.sock", "/run/systemd", "/boot")
_WRITES = """
import json, os
changed = []
def attempt(name, call):
    try:
        call()
        changed.append(name)
    except OSError:
        pass
interpreter = os.path.realpath("/opt/python/bin/python3")
for top in ("/usr", "/usr/bin", "/opt", "/opt/python", "/opt/python/bin", "/dev", os.path.dirname(interpreter)):
    attempt("create in " + top, lambda: os.close(os.open(top + "/hotbed", os.O_CREAT | os.O_WRONLY)))
    attempt("mkdir in " + top, lambda: os.mkdir(top + "/hotbed-dir"))
attempt("chmod", lambda: os.chmod(interpreter, 0o777))
attempt("utime", lambda: os.utime(interpreter))
attempt("append", lambda: os.close(os.open(interpreter, os.O_WRONLY | os.O_APPEND)))
attempt("rename", lambda: os.rename("/usr/bin/env", "/usr/bin/env2"))
attempt("replace", lambda: os.rename("/usr", "/usr2"))
attempt("unlink", lambda: os.unlink("/usr/bin/env"))
attempt("link", lambda: os.link("/usr/bin/env", "/tmp/env"))
print(json.dumps(changed))
"""
_RACE = """
import os, time
os.mkdir("/work/x")
open("/work/x/f", "w").write("inside")
os.rename("/work/x", "/work/d")  # a reader sees all of the file or none
os.symlink("/proc/1/root/etc", "/work/l")
end = time.time() + 3
while time.time() < end:
    try:
        os.rename("/work/d", "/work/x"); os.rename("/work/l", "/work/d")
        os.rename("/work/d", "/work/l"); os.rename("/work/x", "/work/d")
    except OSError:
        pass
"""
_DEEP = """
import os
for _ in range(1200):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
os.chmod(".", 0)
os.mkdir("/work/closed")
os.chmod("/work/closed", 0)
print("made")
"""


async def host_files_unseen(bench: Bench) -> None:
    """Well-known places, the node's own, and every home there is."""
    places = [*_SECRETS, *_homes(), str(bench.backend.run.directory), os.getcwd(), str(Path.home() / ".ssh")]
    wanted = " ".join(f"'{place}'" for place in places if place != "/" and not place.startswith(("/usr", "/opt")))
    outcome = await bench.shell(f"for p in {wanted}; do [ -e $p ] && echo $p; done; true")
    hold(outcome.stdout == b"", f"seen: {outcome.stdout!r}")
    mounts = (await bench.shell("cut -d' ' -f5 /proc/self/mountinfo")).stdout.decode().split()
    allowed = ("/usr", "/opt", "/dev", "/proc", "/bin", "/sbin", "/lib", "/nix")
    hold(all(m == "/" or m.startswith(allowed) for m in mounts), f"mounts: {mounts}")


def _homes() -> list[str]:
    """Every home; none where not even we may look (a hardened service)."""
    try:
        return [str(path) for path in Path("/home").iterdir()]
    except OSError:
        return []


async def host_files_read_only(bench: Bench) -> None:
    """Creating, changing, renaming and replacing what comes from the host."""
    changed = await bench.answer(_WRITES)
    hold(changed == [], f"worked: {changed}")
    remount = await bench.shell(
        "mount -o remount,rw /usr; mount -o remount,rw,bind /opt/python; touch /usr/hotbed && echo rw"
    )
    hold(remount.stdout == b"", "a tree of the host was made writable")


async def downloads_stay_inside(bench: Bench) -> None:
    """Links of every kind, and a folder that becomes one while it is read."""
    host = Path("/etc/passwd").read_bytes()
    async with bench.box() as box:
        await shell_in(box, "ln -s /etc/passwd a; ln -s /proc/1/root/etc/passwd b; ln -s ../../../../etc/passwd c")
        for path in ("/work/a", "/work/b", "/work/c", "/../../etc/passwd", "/proc/self/root/etc/passwd"):
            hold(await _read(box, path) != host, f"{path} led to the host's file")
        racing = asyncio.gather(code_in(box, _RACE, timeout_s=10.0))
        for _ in range(300):
            hold(await _read(box, "/work/d/f") in (None, b"inside"), "a rename race led out")
            hold(await _read(box, "/work/d/passwd") != host, "a rename race led out")
        await racing


async def _read(box: ForkBox, path: str) -> bytes | None:
    try:
        fd, _ = await box.open(path, "r")
    except Error:
        return None
    with os.fdopen(fd, "rb") as file:
        return bytes(file.read(1 << 20))


async def only_regular_files_travel(bench: Bench) -> None:
    """A pipe nobody writes, a device without end, a socket, a directory; and a file of a terabyte that is all hole."""
    make = "import os, socket; os.mkfifo('/work/pipe'); socket.socket(socket.AF_UNIX).bind('/work/socket')"
    async with bench.box() as box:
        await code_in(box, make)
        for path in ("/work/pipe", "/dev/zero", "/work/socket", "/work", "/dev/tty", "/proc/self/mem"):
            began = time.monotonic()
            try:
                os.close((await box.open(path, "r"))[0])
            except Error as error:
                hold(path != "/work/pipe" or isinstance(error, NotAFile), f"{path}: {error}")
            else:
                hold(False, f"{path} was opened as a file")
            hold(time.monotonic() - began < 2.0, f"{path} blocked")
            if not box.is_alive():
                return


async def deep_trees_removed(bench: Bench) -> None:
    """A tree that no recursive removal could walk, gone with its sandbox."""
    async with bench.box() as box:
        outcome = await code_in(box, _DEEP)
        hold(outcome.stdout == b"made\n", f"the attempt failed: {outcome.stderr[-300:]!r}")
        began = time.monotonic()
    hold(time.monotonic() - began < 5.0, "the sandbox took long to end")
    left = [path.name for path in bench.backend.run.directory.iterdir() if not path.name.startswith("root-")]
    hold(left == [] and not any(bench.backend.run.directory.glob("root-*/*")), f"left on the host: {left}")


ATTEMPTS = (
    Attempt(claim="host-files-unseen", run=host_files_unseen),
    Attempt(claim="host-files-read-only", run=host_files_read_only),
    Attempt(claim="downloads-stay-inside", run=downloads_stay_inside),
    Attempt(claim="only-regular-files-travel", run=only_regular_files_travel),
    Attempt(claim="deep-trees-removed", run=deep_trees_removed),
)
