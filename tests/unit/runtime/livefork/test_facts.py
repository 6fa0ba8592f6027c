"""How a process is set up: asked of one, given to another."""

from __future__ import annotations

from hotbed.runtime.livefork import facts
from hotbed.runtime.livefork.tracee import stop_idle
from tests.unit.runtime.livefork.idling import idle

SETUP = """
import os, resource, signal
os.umask(0o27); os.chdir("/usr"); os.nice(3)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 60))
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_DFL)
"""
LOOK = """
import os, resource, signal
print(os.getcwd(), oct(os.umask(0)), os.nice(0), resource.getrlimit(resource.RLIMIT_NOFILE))
print([[l for l in open("/proc/self/status") if l.startswith(n)][0].split()[1] for n in ("SigIgn", "SigCgt")])
"""


def test_manners_are_taken_over() -> None:
    """Signals, limits, folder, mask and niceness; asking changes nothing."""
    with idle(SETUP, after=LOOK) as one, idle(after=LOOK) as other:
        original = stop_idle(one.pid, 3, patience_s=5)
        original.begin()
        wanted = facts.manner_of(original, facts.status(one.pid))
        original.release()
        vessel = stop_idle(other.pid, 3, patience_s=5)
        vessel.begin()
        facts.assume(vessel, facts.manner_of(vessel, facts.status(other.pid)), wanted)
        vessel.release()

        assert one.go_on() == other.go_on()


def test_what_stands_in_the_way_is_named() -> None:
    """By what it is, in words."""
    start = (
        "import subprocess, threading; threading.Thread(target=threading.Event().wait, daemon=True, name='t').start()"
    )
    start += "; p = subprocess.Popen(['sleep', '60'])"
    start += "\nwhile open(f'/proc/{p.pid}/comm').read() != 'sleep\\n': pass"  # its name comes after its descriptors go
    with idle(start, after="p.kill(); p.wait()") as process:
        names = facts.obstacles(process.pid, facts.status(process.pid), filters=0)

        assert any(name.startswith("threads: 1") for name in names)
        assert any("sleep" in name for name in names)
        process.go_on()


def test_a_running_interval_timer_is_named() -> None:
    """If its signal is handled; any other would kill."""
    timer = "import signal; signal.signal(14, lambda *_: None); signal.setitimer(0, 60)"
    for setup, expected in ((timer, ["an interval timer (setitimer 0)"]), ("", [])):
        with idle(setup) as process:
            tracee = stop_idle(process.pid, 3, patience_s=5)
            tracee.begin()
            found = facts.interval_timers(tracee, facts.status(process.pid))
            tracee.release()

            assert found == expected


def test_a_process_outside_of_a_sandbox_has_rights() -> None:
    """No vessel."""
    with idle() as process:
        assert not facts.has_no_rights(facts.status(process.pid))
