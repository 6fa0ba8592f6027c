"""What the node may ask about the sandbox's files. Single files are answered at once, trees by a child."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List

from ..frames import Header
from . import archive, filing, inventory, layer
from .box import NULL, Box
from .request import Refused

Op = Callable[[Box, Header, List[int]], None]

_STILLNESS = inventory.Stillness()


def refuse(box: Box, header: Header, code: str, message: str) -> None:
    """Answer with an error frame."""
    answer = {"op": "error", "code": code, "message": message[:4096]}
    if type(header.get("id")) is str:
        answer["id"] = header["id"]
    box.send(answer)


def answering(box: Box, header: Header, op: str) -> Callable[[Dict[str, Any]], None]:
    """Answers with an outcome, or with its failure."""

    def call(outcome: Dict[str, Any]) -> None:
        if "code" in outcome:
            refuse(box, header, outcome["code"], outcome.get("message", ""))
        else:
            box.send({"op": op, "id": header.get("id"), **outcome})

    return call


def open_file(box: Box, header: Header, _fds: List[int]) -> None:
    """A descriptor of a regular file."""
    perm = int(header.get("perm", 0o644))
    fd = filing.open_regular(header["path"], header.get("mode", "r"), perm, parents=bool(header.get("parents")))
    try:
        about = filing.description(os.fstat(fd))
        answer = {"op": "opened", "id": header.get("id"), "size": about["size"], "perm": about["perm"]}
        box.send(answer, b"", [fd])
    finally:
        os.close(fd)


def pack(box: Box, header: Header, _fds: List[int]) -> None:
    """A pipe that yields a tar."""
    path = header["path"]
    filing.look_at(path)
    source, sink = os.pipe2(os.O_CLOEXEC)
    try:
        archive.fork(box, lambda fd: archive.pack(path, fd), keep=sink, on_outcome=lambda _: None)
        box.send({"op": "packed", "id": header.get("id")}, b"", [source])
    finally:
        os.close(source)
        os.close(sink)


def unpack(box: Box, header: Header, fds: List[int]) -> None:
    """Extract the tar that the descriptor yields."""
    if len(fds) != 1:
        raise Refused("bad_request", "unpack needs one descriptor, the tar stream")
    path, answer = header["path"], answering(box, header, "unpacked")
    archive.fork(box, lambda fd: archive.unpack(path, fd), keep=fds[0], on_outcome=answer)


def save_layer(box: Box, header: Header, fds: List[int]) -> None:
    """Write the file layer to the descriptor."""
    upper = box.config.get("layer_fd")
    if len(fds) != 1 or upper is None:
        raise Refused("bad_request", "save_layer needs one descriptor, and a sandbox that was made for it")
    answer = answering(box, header, "done")
    small = layer.save_small(upper)
    if small is not None:
        os.write(fds[0], small.data)
        answer(small.outcome)
    else:
        archive.fork(box, lambda fd: layer.save(0, fd), keep=fds[0], on_outcome=answer, stdin=upper)


def restore_layer(box: Box, header: Header, fds: List[int]) -> None:
    """Put the file layer that the descriptor yields over this sandbox's."""
    if len(fds) != 1:
        raise Refused("bad_request", "restore_layer needs one descriptor, the layer")
    answer = answering(box, header, "done")
    if os.fstat(fds[0]).st_size <= layer.SMALL_BYTES:
        answer(archive.attempt(layer.restore, fds[0]))
    else:
        archive.fork(box, layer.restore, keep=fds[0], on_outcome=answer)


def look_at(box: Box, header: Header, _fds: List[int]) -> None:
    """What is at a path."""
    answering(box, header, "done")(filing.look_at(header["path"]))


def entries_of(box: Box, header: Header, _fds: List[int]) -> None:
    """What is in a folder."""
    answering(box, header, "done")(filing.entries_of(header["path"]))


def make_folder(box: Box, header: Header, _fds: List[int]) -> None:
    """Make a folder."""
    answering(box, header, "done")(filing.make_folder(header["path"]))


def remove(box: Box, header: Header, _fds: List[int]) -> None:
    """Remove a file at once, a folder in a child."""
    path, answer = header["path"], answering(box, header, "done")
    if filing.remove_file(path):
        answer({})
    else:
        archive.fork(box, lambda fd: archive.remove(path, fd), keep=NULL, on_outcome=answer)


def look_around(box: Box, header: Header, _fds: List[int]) -> None:
    """What is here besides files."""
    answering(box, header, "done")(inventory.take(box.spare_pids()))


def hold_still(box: Box, header: Header, _fds: List[int]) -> None:
    """Stop everybody but us."""
    _STILLNESS.begin()
    answering(box, header, "done")({})


def go_on(box: Box, header: Header, _fds: List[int]) -> None:
    """Let everybody go on."""
    _STILLNESS.end()
    answering(box, header, "done")({})


OPS: Dict[str, Op] = {
    "open": open_file,
    "pack": pack,
    "unpack": unpack,
    "save_layer": save_layer,
    "restore_layer": restore_layer,
    "stat": look_at,
    "list": entries_of,
    "mkdir": make_folder,
    "remove": remove,
    "look": look_around,
    "still": hold_still,
    "go": go_on,
}
