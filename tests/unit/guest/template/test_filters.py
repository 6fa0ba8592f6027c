"""The filters decide as they say, run by a small BPF machine over every kind of call, and load in this kernel."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from hotbed.guest import kernel
from hotbed.guest.template import filters

ALLOW, KILL = filters.ALLOW, filters.KILL_PROCESS
X86_64, I386 = 0xC000003E, 0x40000003


def decide(program: bytes, number: int, *arguments: int, arch: int = X86_64) -> int:
    """What classic BPF makes of one struct seccomp_data."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, arch, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in words))
    code = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        opcode, yes, no, k = code[at]
        at += 1
        if opcode == 0x06:
            return int(k)
        if opcode == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[opcode]
            at += yes if holds else no


def refused(code: int) -> int:
    """The return value that makes a call fail."""
    return 0x50000 | code


@pytest.mark.parametrize("number", filters.REFUSED.values(), ids=filters.REFUSED)
def test_listed_calls_fail_whatever_their_arguments(number: int) -> None:
    """The list is what the threat model promises."""
    assert decide(filters.template_filter(), number, 1, 2, 3) == refused(errno.EPERM)


@pytest.mark.parametrize("number", filters.USED_BY_ISOLATION.values(), ids=filters.USED_BY_ISOLATION)
def test_what_isolation_uses_is_forbidden_only_after_it(number: int) -> None:
    """A template must still be able to do it."""
    assert decide(filters.template_filter(), number) == ALLOW
    assert decide(filters.sandbox_filter(), number) == refused(errno.EPERM)


@pytest.mark.parametrize("number", [0, 1, 9, 39, 57, 59, 202, 257, 466])
def test_ordinary_calls_pass_both(number: int) -> None:
    """read, write, mmap, getpid, fork, execve, futex, openat, and the newest known one."""
    assert decide(filters.template_filter(), number) == decide(filters.sandbox_filter(), number) == ALLOW


def test_other_tables_do_not_go_around_the_filter() -> None:
    """x32 has the same architecture and a bit; 32-bit calls have another architecture."""
    assert decide(filters.template_filter(), 0x40000000 | 101) == refused(errno.ENOSYS)
    assert decide(filters.template_filter(), 26, arch=I386) == KILL


def test_calls_newer_than_the_list_do_not_exist() -> None:
    """A kernel of next year has calls that nobody looked at."""
    assert decide(filters.template_filter(), 467) == refused(errno.ENOSYS)


def test_clone_is_judged_by_its_flags_and_clone3_not_at_all() -> None:
    """Its flags are in memory."""
    assert decide(filters.template_filter(), 56, 17) == ALLOW
    assert decide(filters.template_filter(), 56, kernel.CLONE_NEWUSER | 17) == refused(errno.EPERM)
    assert decide(filters.template_filter(), 435, 0) == refused(errno.ENOSYS)


@pytest.mark.parametrize(("family", "open_"), [(1, True), (2, True), (10, True), (16, True), (17, False), (40, False)])
@pytest.mark.parametrize("number", [41, 53])
def test_socket_families_are_few(number: int, family: int, open_: bool) -> None:
    """UNIX, INET, INET6, NETLINK; not PACKET, not VSOCK."""
    assert decide(filters.template_filter(), number, family) == (ALLOW if open_ else refused(errno.EAFNOSUPPORT))


def test_terminal_injection_is_seen_through_a_set_upper_half() -> None:
    """The kernel takes an ioctl's request as 32 bits; so must the filter."""
    assert decide(filters.template_filter(), 16, 0, 0x5413) == ALLOW
    assert decide(filters.template_filter(), 16, 0, 0x5412) == refused(errno.EPERM)
    assert decide(filters.template_filter(), 16, 0, 0x7_0000_5412) == refused(errno.EPERM)


@pytest.mark.parametrize("number", filters.BY_PROCESS.values(), ids=filters.BY_PROCESS)
def test_the_limits_and_turns_of_the_agent_are_out_of_reach(number: int) -> None:
    """It is the same user as the program, which is all that the kernel asks. Those of others are the program's."""
    assert decide(filters.template_filter(), number, 1) == refused(errno.EPERM)
    assert decide(filters.template_filter(), number, 0x5_0000_0001) == refused(errno.EPERM)
    assert decide(filters.template_filter(), number, 0) == decide(filters.template_filter(), number, 77) == ALLOW


@pytest.mark.parametrize(("number", "everybody"), filters.BY_KIND.values(), ids=filters.BY_KIND)
def test_nor_is_it_reached_by_kind(number: int, everybody: int) -> None:
    """Process 1, group 1, and all of the user's."""
    program = filters.template_filter()

    assert decide(program, number, everybody, 0) == decide(program, number, 0, 1) == refused(errno.EPERM)
    assert decide(program, number, 1, 1) == refused(errno.EPERM)
    assert decide(program, number, everybody - 1, 0) == decide(program, number, 1, 5) == ALLOW


def test_the_kernel_takes_both() -> None:
    """In a child, for there is no way back."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            for program in (filters.template_filter(), filters.sandbox_filter()):
                kernel.Filter(program).install()
            kernel.unshare(kernel.CLONE_NEWNS)
        except PermissionError:
            status = 0
        finally:
            os._exit(status)

    assert os.waitpid(pid, 0)[1] == 0
