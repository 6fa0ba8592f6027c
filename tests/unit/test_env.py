"""`python env.py` on a laptop plays one episode, so that an environment can be written without a pool."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.published_pool import CANDIDATE, ENV_DIR, write_files

ENV = """
from {module} import serve
def reset(seed):
    return {{"task": seed}}
def step(action):
    return {{"got": action}}, 0.5, action == "stop", {{}}
serve(reset=reset, step=step, close=lambda: print("closed"))
print("never reached as a script")
"""


def play(tmp_path: Path, text: str, actions: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an env.py as its author would."""
    path = tmp_path / "env.py"
    path.write_text(text)
    return subprocess.run([sys.executable, str(path), *arguments], input=actions, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["hotbed.env", "boltzlabs.env"])
def test_a_script_plays_one_episode(tmp_path: Path, module: str) -> None:
    """Actions a line, until it is done."""
    played = play(tmp_path, ENV.format(module=module), '1\n\n{"a": 2}\n"stop"\n9\n', "--seed", "7")

    assert played.returncode == 0
    assert played.stdout.splitlines()[0] == 'task: {"task": 7}'
    assert [line for line in played.stdout.splitlines() if line.startswith("observation")] == [
        'observation: {"got": 1}',
        'observation: {"got": {"a": 2}}',
        'observation: {"got": "stop"}',
    ]
    assert played.stdout.endswith("closed\n")


def test_what_is_no_json_is_asked_for_again(tmp_path: Path) -> None:
    """The commonest slip is a string without quotes."""
    played = play(tmp_path, ENV.format(module="hotbed.env"), 'stop\n"stop"\n')

    assert "a string needs its quotes" in played.stdout
    assert 'observation: {"got": "stop"}' in played.stdout


def test_an_exception_is_shown_as_python_shows_it(tmp_path: Path) -> None:
    """With a hint where the reason is that this is no worker."""
    text = "from hotbed.env import serve\nserve(lambda seed: open('/e' + 'nv/TASK.md').read(), id)"
    played = play(tmp_path, text, "")

    assert played.returncode == 1
    assert "FileNotFoundError" in played.stderr
    assert "hint: /env and /workspace exist in workers only" in played.stderr


def test_the_published_environment_plays_where_there_is_no_worker(tmp_path: Path) -> None:
    """It reads /env and writes /workspace, which the script is shown; nothing of it is left."""
    write_files(tmp_path, ENV_DIR)
    argv = [sys.executable, str(tmp_path / "my_env" / "env.py")]
    played = subprocess.run(argv, input=json.dumps({"code": CANDIDATE}), capture_output=True, text=True, cwd=tmp_path)

    assert (played.returncode, played.stderr) == (0, "")
    assert played.stdout.startswith('task: {"task": "Write add(a, b).')
    assert "reward: 1.0" in played.stdout
    assert sorted(path.name for path in (tmp_path / "my_env").rglob("*")) == [
        "TASK.md",
        "env.py",
        "test_add.py",
        "tests",
    ]


def test_an_imported_env_just_hands_out_its_functions(tmp_path: Path) -> None:
    """The author's own tests import it."""
    (tmp_path / "env.py").write_text(ENV.format(module="hotbed.env").replace('print("never', 'print("imported'))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import env; print(env.step('x'))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert imported.stdout.splitlines()[-1] == "({'got': 'x'}, 0.5, False, {})"
