"""Templates of real images on the real backend: what runs, what is seen, what an image cannot do.

Images are made by hand or, for a Python of its own, from Debian packages; what is missing on the host is skipped.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.bakes import interpreter
from hotbed.node.bakes.baker import Baker
from hotbed.node.bakes.recipe import Recipe
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecOutcome, ExecRequest, TemplateSpec
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.standing import Start
from hotbed.wire.templates import Ready
from tests.e2e.registry import Served
from tests.support.images import BUSYBOX, Layout, busybox, docker_archive, entry, hard, layer, link

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BUSYBOX is None, reason="needs a static busybox")]

Body = Callable[[ForkBackend], Awaitable[None]]


def on_backend(tmp_path: Path, body: Body) -> None:
    """Run with a backend of its own, with no spares in the way."""
    tmp_path.chmod(0o755)  # a template of root's has to reach it with an id of its own
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(tmp_path), images=str(tmp_path / "images")))

    async def whole() -> None:
        await backend.start()
        try:
            await body(backend)
        finally:
            await backend.close()

    asyncio.run(whole())


async def built(backend: ForkBackend, source: str) -> ImageRecord:
    """An image in the store."""
    return await backend.builder.build(source, lambda about: None)


async def ran(backend: ForkBackend, record: ImageRecord, command: str, **spec: Any) -> ExecOutcome:
    """A command in a fresh sandbox of an image."""
    template = await backend.template(TemplateSpec(name="x", image=record.digest, programs=(), **spec))
    box = await template.fork(BoxRequest())
    try:
        return await box.exec(ExecRequest(kind="command", program=command.encode()))
    finally:
        await box.kill()


def test_an_image_without_python_runs_commands_and_refuses_code(tmp_path: Path) -> None:
    """Its files are the root, can be changed, and are as they were in the next sandbox."""
    Layout(tmp_path / "l").add([busybox(entry("etc/motd", b"hello\n"))], Env=["A=image"], WorkingDir="/srv/app")

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        change = "cat /etc/motd; echo $A $PWD $(id -u); rm /bin/cat; echo x >/etc/motd; touch /new; ls / | wc -l"
        for _ in range(2):
            outcome = await ran(backend, record, change)
            assert outcome.stdout.splitlines()[:2] == [b"hello", b"image /srv/app 0"], outcome
        seen = (await ran(backend, record, "ls /; ls /usr /opt /.hotbed 2>&1")).stdout
        assert b"python" not in seen and seen.count(b"No such file") == 3
        template = await backend.template(TemplateSpec(name="x", image=record.digest, programs=()))
        box = await template.fork(BoxRequest())
        with pytest.raises(InvalidRequest, match="no Python"):
            await box.exec(ExecRequest(kind="code", program=b"print(1)"))
        assert (await interpreter.find(backend, record.digest))[0] is None
        await box.kill()

    on_backend(tmp_path, body)


def forty_layers() -> list[bytes]:
    """A root, and forty layers that add, replace, hide and link."""
    layers = [busybox(entry("img"), entry("img/old"), entry("img/old/f", b"0"), entry("img/kept", b"kept", mode=0o640))]
    for number in range(1, 41):
        entries = [entry("img", mtime=1_700_000_000 + number), entry(f"img/f{number}", b"%d" % number)]
        entries.append(entry(f"img/.wh.f{number - 1}", b"") if number > 1 else entry("img/.wh.nothing", b""))
        if number == 20:
            entries += [entry("img/old"), entry("img/old/.wh..wh..opq", b""), entry("img/old/new", b"20")]
        if number == 30:
            entries += [link("img/link", "kept"), entry("img/d", mode=0o750), hard("img/d/same", "img/f30")]
        layers.append(layer(*entries))
    return layers


def test_forty_layers_are_one_root(tmp_path: Path) -> None:
    """With all that they hide of each other, in a sandbox."""
    Layout(tmp_path / "l").add(forty_layers())

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        assert len(record.layers) == 41
        outcome = await ran(backend, record, "cd /img && find .")
        names = set(outcome.stdout.split()) - {b"."}
        assert names == {b"./f40", b"./kept", b"./old", b"./old/new", b"./link", b"./d", b"./d/same"}, names

    on_backend(tmp_path, body)


def test_an_image_cannot_lead_mounts_or_writes_to_the_host(tmp_path: Path) -> None:
    """Links in the place of mount points, a device, a set-user-id program."""
    target = tmp_path / "host"
    target.mkdir(mode=0o777)
    bad = [link(name, str(target)) for name in ("proc", "dev", "sys", "work", "etc2")]
    shell = entry("bin/su", Path(str(BUSYBOX)).read_bytes(), mode=0o4755)
    Layout(tmp_path / "l").add([busybox(*bad, shell, entry("sda", b"", type=b"4", devmajor=8, devminor=0))])

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        outcome = await ran(
            backend, record, "cat /proc/self/status | head -1; echo x >/etc2/evil; ls -l /sda /bin/su", env=()
        )
        assert outcome.stdout.startswith(b"Name:") and b"sda" not in outcome.stdout.replace(b"/sda:", b"")
        assert b"-rwxr-xr-x" in outcome.stdout and os.listdir(target) == []
        assert dict(record.skipped) == {"device nodes": 1, "set-user-id bits": 1}

    on_backend(tmp_path, body)


def test_setup_is_a_layer_and_what_ready_leaves_runs_in_each_sandbox(tmp_path: Path) -> None:
    """Of an image, of this host, and of another template."""
    docker_archive(tmp_path / "a.tar", [busybox()])

    class Teller:
        """Tells nobody."""

        def phase(self, name: str) -> None:
            """A phase begins."""

        def progress(self, about: Any) -> None:
            """How far it is."""

        def log(self, text: str) -> None:
            """What was printed."""

    async def body(backend: ForkBackend) -> None:
        specs: dict[str, TemplateSpec] = {}
        baker = Baker(backend, parent=specs.__getitem__)
        setup = ("echo one >/work/f; rm /bin/wc", "cat /work/f >/etc/g; mkdir -p /d/e; ln -s f /work/l")
        ready = Ready(cmd="sleep 1000 & echo up >/tmp/up")
        first = Recipe(name="a", image=f"docker-archive:{tmp_path}/a.tar", setup=setup, ready=ready)
        baked = await baker.bake(first, Teller())
        specs["a"] = baked.spec
        second = await baker.bake(Recipe(name="b", image="template:a", setup=("echo two >>/work/f",)), Teller())
        third = await baker.bake(Recipe(name="c", image="host", setup=("echo host >/work/h",)), Teller())

        assert (baked.live_state, second.live_state, third.live_state) == ("restarted", "restarted", "none")
        for spec, command, wanted in (
            (
                baked.spec,
                "cat /work/f /etc/g /work/l /tmp/up; ls /bin/wc",
                b"one\none\none\nup\n",
            ),
            (second.spec, "cat /work/f", b"one\ntwo\n"),
            (third.spec, "cat /work/h", b"host\n"),
        ):
            box = await (await backend.template(spec)).fork(BoxRequest())
            outcome = await box.exec(ExecRequest(kind="command", program=command.encode()))
            assert outcome.stdout.startswith(wanted), outcome
            assert box.slot is None or spec is third.spec or len(box.slot.members()) >= 2
            await box.kill()

    on_backend(tmp_path, body)


@pytest.mark.timeout(300)
def test_an_images_own_python_is_warm(tmp_path: Path, debian: Path) -> None:
    """With its own version, paths and packages, and its fork has what was preloaded."""
    Layout(tmp_path / "l").add(
        [debian.read_bytes(), layer(link("bin/sh", "busybox"), entry("app/mine.py", b"x = 42\n"))],
        Env=["PYTHONPATH=/app"],
    )

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        python, note = await interpreter.find(backend, record.digest)
        assert python is not None and python.executable == "/usr/bin/python3" and note == ""
        backend.images.put(replace(record, python=python))
        template = await backend.template(
            TemplateSpec(name="py", image=record.digest, preload=("decimal", "mine"), programs=())
        )
        box = await template.fork(BoxRequest())
        asked = "sys.version_info[:3], sorted({'decimal', 'mine'} & set(sys.modules)), sys.path[1]"
        code = f"import sys, sqlite3; print({asked})".encode()
        outcome = await box.exec(ExecRequest(kind="code", program=code))
        version = tuple(map(int, python.version.split(".")))
        assert outcome.stdout.decode() == f"{version} ['decimal', 'mine'] /app\n", outcome
        await box.kill()

    on_backend(tmp_path, body)


def test_forks_of_an_images_sandbox_have_their_own_of_what_it_starts(tmp_path: Path) -> None:
    """Processes cannot be forked, so each starts its own and waits for it; so does who was held still."""
    Layout(tmp_path / "l").add([busybox(entry("www"), entry("www/page", b"first"))])
    start = Start(cmd="busybox httpd -p 8080 -h /www", http="http://localhost:8080/page", timeout_s=30)
    get, counts = b"busybox wget -qO- http://127.0.0.1:8080/page", b"while true; do echo >>/n; sleep 0.01; done &"

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        template = await backend.template(TemplateSpec(name="x", image=record.digest, programs=(), start=start))
        parent: Any = await template.fork(BoxRequest())
        await said(parent, b"echo second >/www/page; rm /etc/motd; touch /etc/mine;" + counts)
        files = await backend.layers.take(parent)
        assert any("8080" in name for name in files.skipped) and files.how in ("cgroup", "signals")
        children: Any = [await template.fork(BoxRequest(layer=files)) for _ in range(3)]
        files.close()
        await said(parent, b"echo third >/www/page")
        assert [await said(box, get) for box in (*children, parent)] == [b"second\n"] * 3 + [b"third\n"]
        assert await said(children[0], b"[ -e /etc/mine ] && [ ! -e /etc/motd ] && echo yes") == b"yes\n"
        await backend.layers.freeze(parent)
        await backend.layers.reclaim(parent)
        await backend.layers.thaw(parent)
        assert await said(parent, get) == b"third\n"
        await asyncio.gather(*(box.kill() for box in (parent, *children)))

    async def said(box: Any, command: bytes) -> bytes:
        return bytes((await box.exec(ExecRequest(kind="command", program=command))).stdout)

    on_backend(tmp_path, body)


@pytest.mark.timeout(300)
def test_a_node_image_runs_node(tmp_path: Path, debian: Path) -> None:
    """With its own libraries, `require` and child processes; and so do forks of a sandbox of it."""
    Layout(tmp_path / "l").add(
        [debian.read_bytes(), layer(link("bin/sh", "busybox"), entry("app/node_modules/mine.js", b"exports.x = 42\n"))],
        Env=["PATH=/usr/bin:/bin", "NODE_ENV=test"],
        WorkingDir="/app",
    )
    script = b"const c = require('child_process'); const said = c.execSync('cat /app/note').toString().trim()\n"
    script += b"console.log(process.version.slice(0, 2), process.env.NODE_ENV, require('mine').x, said)\n"

    async def body(backend: ForkBackend) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        template = await backend.template(TemplateSpec(name="node", image=record.digest, programs=()))
        parent: Any = await template.fork(BoxRequest())
        await parent.exec(ExecRequest(kind="command", program=b"echo changed >note; cat >run.js", stdin=script))
        files = await backend.layers.take(parent)
        for box in (parent, await template.fork(BoxRequest(layer=files))):
            outcome = await box.exec(ExecRequest(kind="commands", argv=(("node", "run.js"),)))
            assert outcome.stdout == b"v1 test 42 changed\n", outcome
            await box.kill()
        files.close()

    on_backend(tmp_path, body)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo")
def test_a_registrys_image_is_fetched_and_what_is_corrupt_fetched_again(tmp_path: Path, registry: Served) -> None:
    """A blob that was spoiled on the disk since is dropped; the second time no layer is fetched."""
    reference, fetched = registry.reference, registry.fetched

    async def body(backend: ForkBackend) -> None:
        spoiled = spoil(backend)
        record = await built(backend, reference)
        assert fetched.count(spoiled) == 1
        assert (await ran(backend, record, "cat /two | wc -c; echo")).stdout.split() == [b"1000"]
        fetched.clear()
        assert await built(backend, reference) == record
        assert spoiled not in fetched and not list(backend.images.downloads.iterdir())

    def spoil(backend: ForkBackend) -> str:
        """Put another blob of the same size where skopeo will look before it fetches one; its digest."""
        good = next(p for p in (tmp_path / "l/blobs/sha256").iterdir() if 200 > p.stat().st_size > 100)
        from hotbed.runtime.images.registry import Registry as Fetched

        backend.images.prepare()
        folder = Fetched(reference, backend.images.downloads, None, int).folder / "blobs/sha256"
        folder.mkdir(parents=True)
        (folder / good.name).write_bytes(bytes(good.stat().st_size))
        return good.name

    on_backend(tmp_path, body)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo")
def test_an_image_that_two_want_at_once_is_fetched_once(tmp_path: Path, registry: Served) -> None:
    """Who comes second waits, and neither removes what the other reads."""
    reference, fetched = registry.reference, registry.fetched

    async def body(backend: ForkBackend) -> None:
        first, second = await asyncio.gather(built(backend, reference), built(backend, reference))
        assert first == second and len(backend.images.layers()) == 2
        blobs = [name for name in fetched if fetched.count(name) > 1]
        assert len(set(blobs)) <= 1, "no blob but the config, which is asked for first"
        assert not list(backend.images.downloads.iterdir()) and not list(backend.images.turns.folder.iterdir())

    on_backend(tmp_path, body)


def test_a_build_that_is_given_up_leaves_nothing_running(tmp_path: Path) -> None:
    """No process, no part of a layer; what was complete stays, and the next build goes on from there."""
    Layout(tmp_path / "l").add([busybox(), layer(*(entry(f"n{n}", b"x" * 4000) for n in range(1500)))])

    async def body(backend: ForkBackend) -> None:
        begun: list[Any] = []
        task = asyncio.ensure_future(backend.builder.build(f"oci:{tmp_path}/l", begun.append))
        while not any(about.get("layer") == 2 for about in begun) and not task.done():
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        kept = backend.images.layers()
        record = await built(backend, f"oci:{tmp_path}/l")
        assert len(record.layers) == 2 and set(kept) <= set(record.layers)
        deadline = time.monotonic() + 10
        while os.listdir(tmp_path / "images/partial") and time.monotonic() < deadline:
            backend.images.prepare()
            await asyncio.sleep(0.05)
        assert os.listdir(tmp_path / "images/partial") == []

    on_backend(tmp_path, body)


def test_sockets_of_a_root_directory_are_left_out(tmp_path: Path) -> None:
    """They are nothing without who listens."""
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(str(BUSYBOX), root / "bin/busybox")
    os.symlink("busybox", root / "bin/sh")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(root / "s"))

        async def body(backend: ForkBackend) -> None:
            record = await built(backend, f"rootfs:{root}")
            assert (await ran(backend, record, "[ -e /s ] || echo gone")).stdout == b"gone\n"

        on_backend(tmp_path, body)
