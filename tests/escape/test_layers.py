"""Attempts on forks of sandboxes: from the parent whose files are copied, and from the children that share them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import Box, BoxRequest, ExecRequest, Limits, Template, TemplateSpec

SECRET = "a-siblings-own-secret"
# Everything that a hostile sandbox can put into its files, and that a copy of them meets.
HOSTILE = r"""
set +e
cd /work
truncate -s 8E huge 2>/dev/null || truncate -s 1T huge
cp /bin/true setuid; chmod 6755 setuid
mknod null c 1 3; mknod gone c 0 0; mknod disk b 254 0
mkfifo fifo
python3 - <<'END'
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("/work/socket")
os.chdir("/work"); os.mkdir("deep"); os.chdir("deep")
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chdir("/work"); os.mkdir("wide")
for i in range(3000):
    open(f"/work/wide/{i}", "w").close()
os.mkdir("/work/links"); open("/work/links/0", "w").close()
for i in range(1, 2000):
    os.link("/work/links/0", f"/work/links/{i}")
os.makedirs("/work/back\nslash/\udcff".encode(errors="surrogateescape"))
for name in ("user.overlay.opaque", "user.overlay.whiteout", "user.overlay.redirect", "trusted.overlay.opaque"):
    try:
        os.setxattr("/work", name, b"y")
    except OSError:
        pass
END
ln -s / root; ln -s ../../../../../../etc/shadow shadow; ln -s /proc/1/root agent; ln -s /proc/self/fd fds
ln -s loop loop
rm -r /tmp; ln -s / /tmp; rm -rf /var; mkdir /var; chmod 000 /var; rm /etc/passwd; ln -s /proc/1/environ /etc/passwd
mkdir /.hotbed; mkdir -p /.hotbed/layers/1/u; echo planted > /.hotbed/layers/1/u/planted
chmod 000 /work/wide
true
"""
LOOK = r"""
import os, stat
found = {"nodes": [], "setuid": os.stat("/work/setuid").st_mode & 0o7777 == 0o6755}
for top, folders, files in os.walk("/work"):
    for name in files:
        mode = os.lstat(os.path.join(top, name)).st_mode
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            found["nodes"].append(name)
    folders[:] = [name for name in folders if name != "d"]
found["euid"] = os.geteuid()
found["caps"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]
found["nnp"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")]
found["mounts"] = [line.split()[4] for line in open("/proc/self/mountinfo")]
found["links"] = os.stat("/work/links/0").st_nlink
found["huge"] = os.stat("/work/huge").st_blocks
found["root"] = os.readlink("/work/root")
print(repr(found))
"""
Attack = Callable[[ForkBackend, Template], Awaitable[None]]


@pytest.fixture
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Attack], None]]:
    """Run an attack on a backend of its own."""
    directory = tmp_path_factory.mktemp("layers")
    directory.chmod(0o755)  # a template of root's has to reach it with an id of its own
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(directory)))

    async def run(attack: Attack) -> None:
        await backend.start()
        try:
            await attack(backend, await backend.template(TemplateSpec(name="python", programs=())))
        finally:
            await backend.close()

    yield lambda attack: asyncio.run(run(attack))


async def said(box: Box, program: str, kind: Any = "command") -> str:
    """What something prints in a sandbox."""
    outcome = await box.exec(ExecRequest(kind=kind, program=program.encode(), timeout_s=30))
    return (outcome.stdout + outcome.stderr).decode(errors="replace")


async def children(backend: ForkBackend, template: Template, parent: Any, count: int) -> list[Box]:
    """Forks of a sandbox."""
    layer = await backend.layers.take(parent)
    made = [await template.fork(BoxRequest(layer=layer)) for _ in range(count)]
    layer.close()
    for child in made:
        await child.ready()
    return made


def test_forks_see_nothing_of_siblings(attacked: Callable[[Attack], None]) -> None:
    """What a child writes, and what the parent writes later, is in no other child, nor can it be reached from there."""

    async def attack(backend: ForkBackend, template: Template) -> None:
        parent = await template.fork(BoxRequest())
        await said(parent, "echo shared > /work/f")
        one, other = await children(backend, template, parent, 2)
        await said(one, f"echo {SECRET} > /work/f; echo {SECRET} > /work/own; rm -r /home")
        await said(parent, f"echo {SECRET} > /work/f")
        hunt = f"cat /work/f; ls -d /home; grep -rsl {SECRET} / --exclude-dir=proc --exclude-dir=usr; ls /work"
        assert await said(other, hunt) == "shared\n/home\nf\n"
        (grandchild,) = await children(backend, template, other, 1)
        assert await said(grandchild, hunt) == "shared\n/home\nf\n"

    attacked(attack)


def test_shared_files_cannot_be_changed(attacked: Callable[[Attack], None]) -> None:
    """Not through a mapping, a hard link, an attribute or a descriptor: each child changes a copy of its own."""
    change = """
import mmap, os
with open("/work/f", "r+b") as file:
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[0:6] = b"hacked"
os.link("/work/f", "/work/g"); os.chmod("/work/f", 0o777); os.utime("/work/f", (1, 1)); os.truncate("/work/f", 3)
print(open("/work/g").read())
"""

    async def attack(backend: ForkBackend, template: Template) -> None:
        parent = await template.fork(BoxRequest())
        await said(parent, "echo shared > /work/f; chmod 640 /work/f")
        one, other = await children(backend, template, parent, 2)
        assert await said(one, change, "code") == "hac\n"
        assert await said(other, "cat /work/f; stat -c '%a %h' /work/f") == "shared\n640 1\n"
        assert await said(parent, "cat /work/f; stat -c '%a %h' /work/f") == "shared\n640 1\n"

    attacked(attack)


def test_layers_are_out_of_reach(attacked: Callable[[Attack], None]) -> None:
    """No path, mount, descriptor or process leads from a child to what it stands on, or to who made it."""
    look = """
import os
print(sorted(os.listdir("/proc/self/fd"))[-1], [n for n in os.listdir("/proc") if n.isdigit() and int(n) > 1
      and n != str(os.getpid())], os.path.exists("/.hotbed"), os.listdir("/"))
for line in open("/proc/self/mountinfo"):
    if line.split()[4] == "/" or "tmpfs" in line.split():
        print(line.split()[4])
for number, words in ((308, (0, 0)), (272, (0x20000,)), (428, (-100, b"/", 1)), (161, (b"/tmp",)), (166, (b"/", 2))):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    print(libc.syscall(number, *words))
"""

    async def attack(backend: ForkBackend, template: Template) -> None:
        parent = await template.fork(BoxRequest())
        (child,) = await children(backend, template, parent, 1)
        mounts = []
        for box in (child, parent):
            lines = (await said(box, look, "code")).splitlines()
            assert " [] False [" in lines[0] and "hotbed" not in lines[0]
            assert lines[-5:] == ["-1"] * 5
            mounts.append(lines[1:-5])
        assert "/" in mounts[1] and mounts[0] == mounts[1]
        assert not any("layers" in mount or "scratch" in mount for mount in mounts[0])

    attacked(attack)


@pytest.mark.timeout(120)
def test_hostile_files_hurt_neither_copy_nor_children(attacked: Callable[[Attack], None]) -> None:
    """Set-user-id, devices, pipes, links out, holes, deep and wide trees, names of ours: copied, and worth nothing."""

    async def attack(backend: ForkBackend, template: Template) -> None:
        parent = await template.fork(BoxRequest())
        await said(parent, HOSTILE)
        before = await said(parent, LOOK, "code")
        (child,) = await children(backend, template, parent, 1)
        (grandchild,) = await children(backend, template, child, 1)
        for box in (child, grandchild):
            found = eval(await said(box, LOOK, "code"))
            assert (found["nodes"], found["setuid"], found["euid"]) == ([], True, 0)
            assert (found["caps"], found["nnp"]) == (["0" * 16], ["1"])
            assert (found["links"], found["huge"], found["root"]) == (2000, 0, "/")
            assert not any("planted" in mount for mount in found["mounts"])
            assert await said(box, "ls /.hotbed/layers/1/u; /work/setuid; echo $?") == "planted\n0\n"
            assert await said(box, "cat /work/shadow /etc/passwd /work/agent/etc/passwd 2> /dev/null") == ""
        assert await said(parent, LOOK, "code") == before
        assert backend.layers.size < 64 << 20

    attacked(attack)


def test_a_full_disk_is_copied_within_its_quota(attacked: Callable[[Attack], None]) -> None:
    """A layer has the quota of its sandbox, and no more of the node's memory."""

    async def attack(backend: ForkBackend, template: Template) -> None:
        limits = Limits(disk_mib=16, files=500)
        parent: Any = await template.fork(BoxRequest(limits=limits))
        await said(parent, "dd if=/dev/zero of=/work/big bs=1M 2>/dev/null; for i in $(seq 600); do : > /work/$i; done")
        layer = await backend.layers.take(parent)
        assert layer.size <= 16 << 20
        child = await template.fork(BoxRequest(layer=layer, limits=limits))
        assert int(await said(child, "stat -c %s /work/big")) > 15 << 20
        assert (await said(child, "dd if=/dev/zero of=/work/more bs=1M 2>&1")).count("No space left") == 1
        layer.close()

    attacked(attack)
