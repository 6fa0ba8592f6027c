"""A template's first steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hotbed.guest.template import start

STARTING = """
import sys
from hotbed.guest.template import start
loaded = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        loaded.append(name)
sys.meta_path.insert(0, Watch())
start._LIBRARIES[3:3] = ["no_such_library"]
def main():
    import json
    print(json.dumps(loaded))
    sys.exit(0)
import types
zygote = sys.modules["hotbed.guest.template.zygote"] = types.ModuleType("zygote")
zygote.main = main
import hotbed.guest.template
hotbed.guest.template.zygote = zygote
start.main()
"""


def test_libraries_come_first_and_one_that_is_not_there_is_left_out() -> None:
    source = str(Path(start.__file__).parents[3])
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {source!r})\n{STARTING}"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60)

    loaded = json.loads(done.stdout)

    assert "no_such_library" in loaded
    assert loaded.index("no_such_library") < loaded.index("_socket") < loaded.index("json")
