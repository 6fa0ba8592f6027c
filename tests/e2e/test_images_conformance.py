"""What we unpack is what umoci unpacks of the same image: identical trees, in all that a sandbox can see of them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotbed.runtime.images.record import ImageRecord, hex_of
from hotbed.runtime.images.store import Store
from tests.e2e.test_images import built, forty_layers, on_backend
from tests.support import treelook
from tests.support.images import Layout, entry, hard, layer, link

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("umoci") is None, reason="needs umoci"),
]

NOW = "opaque"  # umoci leaves a folder that it emptied for a whiteout with the time at which it did
NANOSECONDS = {"mtime": "1700000000.123456789"}
NOTE = {"SCHILY.xattr.user.note": "é\n", "SCHILY.xattr.user.empty": ""}


def awkward_layers() -> list[bytes]:
    """Whatever formats and layers can do to each other."""
    base = layer(
        entry("keep"),
        *(entry(f"keep/{n}", b"%d" % n, mode=mode) for n, mode in enumerate((0o600, 0o4755, 0o2750, 0o1777, 0))),
        *(entry("attributes", b"x", pax_headers=NOTE), entry("times", b"", pax_headers=NANOSECONDS)),
        *(entry("sticky", mode=0o1777), entry("closed", mode=0o500), entry("closed/f", b"1")),
        *(entry("one", b"same"), hard("two", "one"), hard("keep/three", "two"), link("soft", "one")),
        *(
            entry("becomes-file"),
            entry("becomes-file/f", b""),
            entry("becomes-folder", b"f"),
            entry("becomes-link", b""),
        ),
        *(entry("opaque"), entry("opaque/old", b""), entry("opaque/deep"), entry("opaque/deep/old", b"")),
        *(
            entry("n" * 200),
            entry("n" * 200 + "/" + "m" * 200, b"long"),
            entry("ünïcode", b"u"),
            entry("pipe", b"", type=b"6"),
        ),
        *(entry("node", b"", type=b"3", devmajor=1, devminor=3), entry("dangling-target-later", b"1")),
        *(entry("tree"), entry("tree/a"), entry("tree/a/b", b"1"), entry("gone"), entry("gone/f", b"1")),
    )
    second = layer(
        *(entry("becomes-file", b"now"), entry("becomes-folder"), entry("becomes-folder/in", b"2")),
        *(link("becomes-link", "/nowhere"), entry("opaque", mode=0o711), entry("opaque/.wh..wh..opq", b"")),
        *(entry("opaque/new", b"new"), entry(".wh.gone", b""), entry("tree/a/.wh.b", b""), entry("tree/a/c", b"3")),
        *(entry("one", b"another"), entry("keep/0", b"changed", mode=0o640), entry("closed", mode=0o555)),
    )
    third = layer(
        *(entry("gone"), entry("gone/again", b""), entry("tree/a/b", b"back"), entry("opaque/deep", b"a file")),
        *(
            entry(".wh.two", b""),
            entry("opaque/deeper/folders", b"x"),
            entry("opaque/deeper"),
            entry("soft", b"no link any more"),
        ),
    )
    return [base, second, third]


@pytest.mark.parametrize("name", ["forty", "awkward", "debian"])
@pytest.mark.timeout(300)
def test_trees_are_umocis(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    """Entry by entry: kinds, modes, times to the nanosecond, contents, links of both sorts, attributes."""
    layers = {"forty": forty_layers, "awkward": awkward_layers}.get(name)
    Layout(tmp_path / "l").add(layers() if layers else [request.getfixturevalue("debian").read_bytes()])

    async def body(backend: Any) -> None:
        record = await built(backend, f"oci:{tmp_path}/l")
        ours, theirs = await asyncio.gather(
            asyncio.to_thread(ours_of, backend.images, record), asyncio.to_thread(umocis, tmp_path)
        )
        assert ours.keys() == theirs.keys()
        others = [
            f"{path}: {ours[path]} is {theirs[path]}" for path in ours if ours[path] != theirs[path] and path != NOW
        ]
        assert not others, "\n".join(other[-300:] for other in others[:40])

    on_backend(tmp_path, body)


def ours_of(store: Store, record: ImageRecord) -> dict[str, Any]:
    """What an overlay of the image's layers shows; mounted in a namespace that ends with the look."""
    places = [f"{hex_of(key)}/tree" for key in reversed(record.layers)]  # relative: the options are one page
    script = f"mount -t overlay o -o lowerdir={':'.join([*places, 'none'])},userxattr,ro mnt && exec $0 $1 mnt"
    top = store.home / "layers"
    for folder in ("none", "mnt"):
        (top / folder).mkdir()
    words = ["unshare", "-m", "sh", "-c", script, sys.executable, str(Path(treelook.__file__))]
    done = subprocess.run(words, cwd=top, check=True, capture_output=True, text=True)
    for folder in ("none", "mnt"):
        (top / folder).rmdir()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def umocis(tmp_path: Path) -> dict[str, Any]:
    """What umoci makes of it."""
    words = ["umoci", "unpack", "--image", f"{tmp_path}/l:latest", str(tmp_path / "bundle")]
    subprocess.run(words, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(json.dumps(treelook.looks(str(tmp_path / "bundle/rootfs"))))
    return found
