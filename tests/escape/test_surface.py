"""Attempts to break the claims on the kernel's surface. What each tries is in `hotbed.runtime.selfcheck`."""

from __future__ import annotations

from tests.escape.conftest import Attempting


def test_dangerous_system_calls_refused(attempt: Attempting) -> None:
    """`ptrace`, `process_vm_*`, keyrings, `io_uring`, `userfaultfd`, `bpf`, `perf_event_open`, `kexec`, ..."""
    attempt("dangerous-system-calls-refused")


def test_clone3_refused(attempt: Attempting) -> None:
    """`clone3` hides its flags from the filter in memory, so it answers `ENOSYS` and libraries fall back ..."""
    attempt("clone3-refused")


def test_foreign_system_calls_refused(attempt: Attempting) -> None:
    """The x32 and 32-bit tables do not go around the filter."""
    attempt("foreign-system-calls-refused")


def test_socket_families_limited(attempt: Attempting) -> None:
    """Only UNIX, INET, INET6 and NETLINK sockets exist."""
    attempt("socket-families-limited")


def test_no_terminal_injection(attempt: Attempting) -> None:
    """There is no controlling terminal, and `TIOCSTI` is refused by argument."""
    attempt("no-terminal-injection")


def test_terminals_are_its_own(attempt: Attempting) -> None:
    """An exec's terminal is one of the sandbox's devpts, and hung up with it."""
    attempt("terminals-are-its-own")


def test_kernel_settings_read_only(attempt: Attempting) -> None:
    """Nothing below `/proc/sys` and no sysrq trigger can be written."""
    attempt("kernel-settings-read-only")


def test_no_kernel_memory_or_log(attempt: Attempting) -> None:
    """`/dev/mem`, `/dev/kmsg`, `/dev/kvm` and every other device but null, zero, full, random, urandom ..."""
    attempt("no-kernel-memory-or-log")
