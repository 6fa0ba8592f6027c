"""The doctor's checks: each tries the thing, and a failed one says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.guest import kernel
from hotbed.runtime import probe
from hotbed.runtime.linux import mounts
from hotbed.runtime.linux.cgroups import Layout
from hotbed.runtime.probe import Check


def test_checks_cover_what_isolation_needs() -> None:
    """On a host that runs this suite they all hold."""
    found = {check.name: check for check in probe.checks()}

    assert {
        "a /proc of its own",
        "user namespaces",
        "pid namespaces",
        "network namespaces",
        "seccomp filters",
        "cgroups",
    } <= set(found)
    assert all(check.ok for check in found.values() if check.needed), [c for c in found.values() if not c.ok]
    assert probe.isolation_of(list(found.values())) == "fork"


def test_nothing_is_isolated_when_one_needed_check_fails() -> None:
    """Never a little."""
    checks = [Check(name="a", ok=True), Check(name="b", ok=False)]

    assert probe.isolation_of(checks) == "none"
    assert probe.isolation_of([Check(name="a", ok=True), Check(name="b", ok=False, needed=False)]) == "fork"


def test_failing_check_tells_the_kernels_words_and_the_hint() -> None:
    """From the child in which it was tried."""

    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    check = probe._try("thing", refuse, hint="allow it")

    assert (check.ok, check.detail, check.hint) == (False, "Operation not permitted", "allow it")


def test_a_masked_proc_is_found_out() -> None:
    """Containers mount over parts of it; every namespace can be made there, and no sandbox."""

    def masked() -> None:
        mounts.tmpfs("/proc/sys", "size=1k")
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)  # who cannot take the mask off
        probe._own_proc()

    check = probe._try("a /proc of its own", probe._in_user_namespace(masked), hint="unmask it")

    assert (check.ok, check.detail, check.hint) == (False, "Operation not permitted", "unmask it")


def test_a_container_is_told_what_can_be_done_about_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a newer kernel nor a session of systemd's helps there."""
    monkeypatch.setattr(probe, "in_container", lambda: True)
    monkeypatch.setattr(kernel, "unshare", refuse_namespaces)

    found = {check.name: check for check in probe.checks()}

    assert "--security-opt" in (found["read-only mounts (mount_setattr)"].hint or "")
    assert "--memory" in (probe._limits(Layout(kind="none", missing={})).hint or "")


def refuse_namespaces(_flags: int) -> None:
    """As a container's seccomp profile does."""
    raise PermissionError(1, "Operation not permitted")


_PRCTL_DROPS = """
from hotbed.guest import kernel
from hotbed.runtime import probe
for capability in {capabilities}:
    kernel.prctl(24, capability)  # PR_CAPBSET_DROP: gone with the exec of a child that is root
import os, sys
os.execv(sys.executable, [sys.executable, "-c", '''
from hotbed.runtime import probe
found = {{check.name: check for check in probe.checks()}}
own = found["mounts and ids of root's own"]
print(own.ok, own.hint == probe.ROOT_HINT, probe.isolation_of(list(found.values())))
'''])
"""


@pytest.mark.root
@pytest.mark.parametrize("capabilities", [(21,), (7,)], ids=["sys_admin", "setuid"])
def test_a_root_without_its_rights_is_told_so(capabilities: tuple[int, ...]) -> None:
    """A container's root can make namespaces, as anybody can, and a node that it starts dies of its first mount."""
    code = _PRCTL_DROPS.format(capabilities=capabilities)

    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    ).stdout

    assert printed.split() == ["False", "True", "none"]


def test_child_that_dies_is_a_failed_check() -> None:
    """A filter may kill instead of refusing."""
    assert not probe._try("thing", lambda: os.kill(os.getpid(), 9)).ok


@pytest.mark.parametrize(
    ("knob", "value", "word"),
    [
        ("_APPARMOR", "1", "apparmor_restrict_unprivileged_userns=0"),
        ("_CLONE_SYSCTL", "0", "unprivileged_userns_clone=1"),
        ("_MOST_USER_NAMESPACES", "0", "max_user_namespaces"),
    ],
)
def test_hint_names_the_knob(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, knob: str, value: str, word: str) -> None:
    """Each distribution has its own."""
    for name in ("_APPARMOR", "_CLONE_SYSCTL", "_MOST_USER_NAMESPACES"):
        monkeypatch.setattr(probe, name, str(tmp_path / name))
    (tmp_path / knob).write_text(value + "\n")

    assert word in probe.user_namespace_hint()


def test_refused_stage_comes_with_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `connect()` says on such a host is what the doctor would say."""
    monkeypatch.setattr(probe, "user_namespace_hint", lambda: "allow user namespaces")
    monkeypatch.setattr(probe, "mount_hint", lambda: None)

    assert probe.refusal("namespaces: Operation not permitted").hint == "allow user namespaces"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert probe.refusal("mount namespace: Operation not permitted").hint == probe.ROOT_HINT
    assert "hotbed doctor" in str(probe.refusal("root filesystem: Operation not permitted").hint)


def test_report_says_what_holds_the_limits() -> None:
    """rlimits are a lesser promise, and are told as such."""
    limited = probe.report(Layout(kind="v1", controllers={"memory": Path("/x")}))
    unlimited = probe.report(Layout(kind="none", missing={"memory": "not writable"}))

    assert limited["limits"]["memory"] == "cgroup" and limited["limits"]["cpu"] == "none"
    assert "rlimit" in unlimited["limits"]["memory"] and unlimited["missing"] == {"memory": "not writable"}
