"""Files of one sandbox in others, and sandboxes held still, on any backend."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import Error
from hotbed.runtime.base import Box, BoxRequest
from tests.conformance.conftest import Harness


def taken(harness: Harness, box: Box, **how: Any) -> Any:
    """A layer of a sandbox."""
    layers: Any = harness.backend.layers  # type: ignore[attr-defined]  # optional, and both have it
    return harness.run(layers.take(box, **how))


def test_a_fork_has_the_files_of_its_parent(harness: Harness) -> None:
    """Links and modes too; what was removed is not there; and each goes its own way from then on."""
    with harness.box() as parent:
        made = "mkdir d; echo one > d/f; ln d/f d/g; ln -s f d/l; chmod 640 d/f; echo x > gone; rm gone"
        assert harness.exec(parent, "command", made).status == "ok"
        layer = taken(harness, parent)
        with harness.box(layer=layer) as child, harness.box(layer=layer) as sibling:
            seen = harness.exec(child, "command", "cat d/f d/g d/l; stat -c %a d/f; ls; echo two > d/f; echo own > own")
            assert seen.stdout == b"one\none\none\n640\nd\n"
            assert harness.exec(sibling, "command", "cat d/f; ls").stdout == b"one\nd\n"
        assert harness.exec(parent, "command", "cat d/f; ls").stdout == b"one\nd\n"
        layer.close()


def test_forks_of_forks_pile_up(harness: Harness) -> None:
    """Each sees the newest state of each file, and can remove what came from below."""
    with harness.box() as first:
        harness.exec(first, "command", "echo 1 > a; echo 1 > b; mkdir d; echo 1 > d/old")
        bottom = taken(harness, first)
        with harness.box(layer=bottom) as second:
            harness.exec(second, "command", "echo 2 > a; rm b; rm -r d; mkdir d; echo 2 > d/new")
            top = taken(harness, second)
        bottom.close()
        with harness.box(layer=top) as third:
            assert harness.exec(third, "command", "cat a; ls . d").stdout == b"2\n.:\na\nd\n\nd:\nnew\n"
        top.close()


def test_a_layer_outlives_its_sandbox(harness: Harness) -> None:
    """Also when the sandbox ended with it, and its own file system became the layer."""
    with harness.box() as parent:
        harness.exec(parent, "command", "echo kept > f")
        layer = taken(harness, parent, end=True)
        with pytest.raises(Error):
            harness.exec(parent, "command", "true")
    with harness.box(layer=layer) as child:
        assert harness.exec(child, "command", "cat f; echo more >> f; cat f").stdout == b"kept\nkept\nmore\n"
    layer.close()


def test_a_child_outlives_its_parent_and_its_layer(harness: Harness) -> None:
    """The kernel keeps what it stands on."""
    with harness.box() as parent:
        harness.exec(parent, "command", "echo kept > f")
        layer = taken(harness, parent)
        child = harness.run(harness.template.fork(BoxRequest(layer=layer)))
        harness.run(child.ready())
    layer.close()

    assert harness.exec(child, "command", "cat f").stdout == b"kept\n"
    with pytest.raises(Error):
        harness.run(harness.template.fork(BoxRequest(layer=layer)))
    harness.run(child.kill())


def test_running_processes_are_named_and_go_on(harness: Harness) -> None:
    """They are not in the copy, and the parent's are none the worse for it."""
    with harness.box() as parent:
        harness.exec(parent, "command", "(while true; do echo . >> tick; sleep 0.01; done) > /dev/null 2>&1 &")
        layer = taken(harness, parent)
        assert "running processes" in layer.skipped[0]
        once = harness.exec(parent, "command", "sleep 0.1; wc -l < tick; sleep 0.2; wc -l < tick").stdout.split()
        assert len(set(once)) == 2
        with harness.box(layer=layer) as child:
            harness.exec(child, "command", "touch tick")
            assert harness.exec(child, "command", "sha1sum tick; sleep 0.1; sha1sum tick").stdout.count(b"tick") == 2
        layer.close()


def test_nothing_runs_in_a_sandbox_that_is_held_still(harness: Harness) -> None:
    """And it ends like any other."""
    layers: Any = harness.backend.layers  # type: ignore[attr-defined]  # optional, and both have it
    with harness.box() as box:
        harness.exec(box, "command", "(while true; do echo . >> tick; sleep 0.01; done) > /dev/null 2>&1 &")
        harness.exec(box, "command", "sleep 0.1")
        assert harness.run(layers.freeze(box)) in ("cgroup", "signals")
        layer = taken(harness, box)
        again = taken(harness, box)
        with harness.box(layer=layer) as one, harness.box(layer=again) as other:
            assert harness.exec(one, "command", "cat tick").stdout == harness.exec(other, "command", "cat tick").stdout
        reclaimed = harness.run(layers.reclaim(box))
        assert reclaimed is None or reclaimed >= 0
        harness.run(layers.thaw(box))
        assert len(set(harness.exec(box, "command", "wc -l < tick; sleep 0.2; wc -l < tick").stdout.split())) == 2
        harness.run(layers.freeze(box))
        layer.close()
        again.close()
