"""What skopeo is asked, and what becomes of its answer. A script stands in for it here; tests/e2e has the real one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.runtime.images.manifests import BadImage, Blob
from hotbed.runtime.images.registry import Registry
from hotbed.runtime.linux import identity
from tests.support.images import Layout, digest, entry, layer


def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, *, stranger: bool = False) -> Registry:
    """A registry that this script answers for."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/skopeo").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin/skopeo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "down").mkdir()
    return Registry("localhost:5000/a:b", tmp_path / "down", identity.mine() if stranger else None, lambda _: None)


def test_the_config_is_asked_for_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is here already need not come again."""
    found = registry(tmp_path, monkeypatch, f'echo "$@" >{tmp_path}/said; printf config')

    assert found.config_digest() == digest(b"config")
    said = (tmp_path / "said").read_text()
    assert "inspect --config --raw --tls-verify=false docker://localhost:5000/a:b" in said and "--no-creds" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="as root it would be run as somebody who cannot read this folder")
def test_a_stranger_gets_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the user whose node it is."""
    registry(tmp_path, monkeypatch, f'echo "$@" >{tmp_path}/said', stranger=True).config_digest()

    assert "--no-creds" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("closed", [True, False])
def test_logins_that_are_roots_own_do_not_stop_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """Without a session, skopeo would look there, and say that it may not."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("hotbed.runtime.images.registry._closed", lambda _: closed)
    registry(tmp_path, monkeypatch, f'echo "<$XDG_RUNTIME_DIR>" >{tmp_path}/said').config_digest()

    assert (tmp_path / "said").read_text() == (f"<{tmp_path}/down>\n" if closed else "<>\n")


def test_what_was_fetched_is_a_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a blob of it can be dropped, to be fetched again."""
    wanted = Layout(tmp_path / "l").add([layer(entry("f", b"x"))], "image")
    found = registry(
        tmp_path, monkeypatch, f'for last; do :; done; p="${{last#oci:}}"; cp -r {tmp_path}/l/. "${{p%:image}}"'
    )

    manifest = found.fetch()
    assert manifest.digest == wanted

    found.drop(manifest.layers[0])
    assert not Path(manifest.layers[0].path).exists()
    found.drop(Blob(path=str(tmp_path / "none")))
    found.clear()
    assert not found.folder.exists()


def test_skopeos_complaint_is_the_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words, not a code."""
    with pytest.raises(BadImage, match="no such manifest"):
        registry(tmp_path, monkeypatch, "echo no such manifest >&2; exit 1").fetch()


def test_without_skopeo_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not ours to bring."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BadImage, match="apt-get install skopeo"):
        Registry("a", tmp_path, None, lambda _: None).config_digest()
