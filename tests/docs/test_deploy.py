"""What is in deploy/ is what the deployment guide says it is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.cli.main import USAGE
from hotbed.server.settings import Settings
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "guides" / "deployment.md").read_text()


def test_the_guide_names_every_file() -> None:
    """One that it does not name is not found by who needs it."""
    files = [file.relative_to(ROOT) for file in DEPLOY.rglob("*") if file.is_file()]

    missing = [str(file) for file in files if str(file) not in GUIDE and f"{file.parent}/" not in GUIDE]

    assert missing == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_service_is_understood_by_systemd(tmp_path: Path) -> None:
    """A misspelled directive is ignored with a warning: the restriction would just not be there."""
    unit = (DEPLOY / "hotbed.service").read_text()
    copy = tmp_path / "hotbed.service"
    copy.write_text(
        re.sub(r"^Documentation=.*$", "", unit.replace("/opt/hotbed/bin/hotbed", sys.executable), flags=re.M)
    )

    found = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)

    assert (found.returncode, found.stderr) == (0, "")


def test_the_service_is_not_tried_again_after_a_mistake() -> None:
    """By the exit code that such a start has."""
    unit = (DEPLOY / "hotbed.service").read_text()

    assert re.findall(r"^RestartPreventExitStatus=(.*)$", unit, re.M) == [str(USAGE)]


def test_the_service_leaves_out_what_would_break_sandboxes() -> None:
    """Each directive that the file warns of is in no line that counts."""
    unit = (DEPLOY / "hotbed.service").read_text()
    warned = re.findall(
        r"\b(?:Restrict|SystemCall|Private|Protect|Proc|Lock|Memory)\w+", unit.partition("Not here,")[2]
    )

    assert len(warned) > 10
    assert [name for name in warned if re.search(rf"^{name}=", unit, re.M)] == []


def test_the_seccomp_profile_lets_through_what_a_sandbox_is_made_of() -> None:
    """And refuses what no sandbox needs."""
    profile = json.loads((DEPLOY / "seccomp.json").read_text())
    [rule] = profile["syscalls"]

    assert (profile["defaultAction"], rule["action"]) == ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO")
    assert not {"unshare", "clone", "clone3", "mount", "setns", "pivot_root", "seccomp", "personality"} & set(
        rule["names"]
    )
    assert {"bpf", "kexec_load", "init_module", "userfaultfd", "io_uring_setup", "keyctl"} <= set(rule["names"])


def test_what_the_image_copies_is_in_its_context() -> None:
    """And little else is: a clone has gigabytes that no image needs."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (?!--)(.+) \S+$", dockerfile, re.M) for word in line.split()]
    kept = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)

    assert len(sources) > 3
    assert sorted(sources) == sorted(kept)


def test_everybody_gives_a_node_the_time_to_drain() -> None:
    """Else those who start it kill it with what runs: after ten seconds, or thirty."""
    dockerfile, unit = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "hotbed.service").read_text()
    pods = [file.read_text() for file in (DEPLOY / "kubernetes").iterdir()]
    given = [
        *re.findall(r"--stop-timeout (\d+)", dockerfile + GUIDE),
        *re.findall(r"^TimeoutStopSec=(\d+)", unit, re.M),
        *re.findall(r"^  terminationGracePeriodSeconds: (\d+)", "".join(pods), re.M),
    ]

    assert len(given) == 3 + 1 + len(pods)
    assert min(map(int, given)) > Settings(runtime_dir="/r", home="/h").drain_s


def test_a_pod_names_a_directory_that_its_node_makes_itself() -> None:
    """A volume is open to its group, and a node refuses a directory that others can enter."""
    pod = (DEPLOY / "kubernetes" / "pod.yaml").read_text()
    [directory] = re.findall(r"name: HOTBED_RUNTIME_DIR, value: (\S+?)\}", pod)

    assert str(Path(directory).parent) in re.findall(r"mountPath: (\S+?)\}", pod)


def test_the_image_and_the_guide_agree() -> None:
    """The flags that the Dockerfile's comment tells are the guide's."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    flags = re.findall(r"--security-opt (\S+?)[ \\\n]", dockerfile)

    assert len(flags) == 3
    assert [flag for flag in flags if f"--security-opt {flag}" not in GUIDE] == []
    assert "\nUSER hotbed\n" in dockerfile
