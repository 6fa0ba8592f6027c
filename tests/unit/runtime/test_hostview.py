"""What a template shows of the host is decided as data, and secrets are never part of it."""

from __future__ import annotations

import sys

import pytest

from hotbed.errors import TemplateFailed
from hotbed.runtime import hostview
from hotbed.runtime.hostview import Bind, HostView, Interpreter


def test_view_names_system_and_interpreter_and_nothing_else() -> None:
    """The rule is to name what is shown."""
    view = hostview.describe()
    targets = {bind.target for bind in view.trees}

    assert "/usr" in targets
    assert targets <= {"/usr", "/opt/python", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}


def test_no_secret_of_etc_is_copied() -> None:
    """Only what programs need to find libraries, time zones and certificates."""
    names = {name.split("/")[0] for name in hostview.describe().etc}

    assert not names & {"shadow", "gshadow", "ssh", "sudoers", "passwd", "hosts", "resolv.conf", "machine-id"}
    assert "ssl" not in hostview.describe().etc and "ssl/private" not in hostview.describe().etc


def test_interpreter_outside_usr_is_shown_at_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its prefix may lie below a home that nobody else may enter."""
    monkeypatch.setattr(sys, "base_prefix", "/somewhere/python")

    found = hostview.node_interpreter()

    assert found.tree == Bind(source="/somewhere/python", target="/opt/python")


def test_interpreter_of_usr_needs_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there already."""
    monkeypatch.setattr(sys, "base_prefix", "/usr")

    found = hostview.node_interpreter()

    assert found.tree is None and found.library_path is None


def test_standard_library_needs_no_package() -> None:
    """It comes with the interpreter."""
    assert hostview.packages_of(["json", "sys", "xml.dom"]) == ()


def test_package_comes_with_its_distribution() -> None:
    """numpy without numpy.libs would not load."""
    pytest.importorskip("numpy")

    targets = {bind.target for bind in hostview.packages_of(["numpy.linalg"])}

    assert "/opt/packages/numpy" in targets or hostview._is_shown(hostview._origin("numpy") or "")
    assert not any(target.endswith((".dist-info/..", "/bin")) for target in targets)


def test_missing_package_is_refused_with_what_to_install() -> None:
    """Before anything is started."""
    with pytest.raises(TemplateFailed, match="no_such_module_at_all") as caught:
        hostview.packages_of(["no_such_module_at_all"])

    assert "pip install no_such_module_at_all" in str(caught.value.hint)


@pytest.mark.parametrize("line", ["numpy>=1.2", "numpy (>=1)", "numpy; python_version<'4'", "numpy[extra]==1"])
def test_requirements_name_is_cut_from_its_conditions(line: str) -> None:
    """Every way in which metadata writes it."""
    assert hostview._required_name(line) == "numpy"


def test_plan_is_plain_data_with_the_templates_variables_on_top() -> None:
    """It travels to the launcher as JSON."""
    view = HostView(
        interpreter=Interpreter(executable="/opt/python/bin/python3", library_path="/opt/python/lib"),
        trees=(Bind(source="/usr", target="/usr"),),
        packages=(Bind(source="/x/numpy", target="/opt/packages/numpy"),),
        links=(("/bin", "usr/bin"),),
        etc=("hosts",),
    )

    plan = hostview.as_plan(view, {"A": "b", "HOME": "/root"})

    assert plan["trees"] == [["/usr", "/usr"]] and plan["links"] == [["/bin", "usr/bin"]]
    assert plan["env"]["A"] == "b" and plan["env"]["HOME"] == "/root"
    assert plan["env"]["PYTHONPATH"] == "/opt/packages" and plan["env"]["LD_LIBRARY_PATH"] == "/opt/python/lib"
    assert plan["guest"][1] == hostview.GUEST_HOME
