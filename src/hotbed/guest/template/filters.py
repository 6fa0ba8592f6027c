"""The seccomp filters of templates and sandboxes, assembled by hand.

Two filters, because each install costs: the *template's* holds everything that a template never needs and is inherited
by every fork for nothing; the *sandbox's* is added last in each fork and forbids what isolating itself has just used.
A filter sees the call's number, its architecture and its six argument words, never memory: that is why clone3, whose
flags are in memory, is refused as unknown (ENOSYS: libraries fall back to clone). Arguments that the kernel reads as
32 bits are compared as 32 bits, or a set upper half would slip through.
"""

from __future__ import annotations

import errno
import struct
from typing import Iterable, List, Sequence, Tuple

from .. import kernel

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_NEW_NAMESPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWCGROUP
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
)
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_PERSONALITIES = (0, 0x0008, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)  # Linux, ADDR_NO_RANDOMIZE, and the query
_TTY_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_NEWEST = 466  # removexattrat: later calls are unknown here, so they are unknown inside

_AGENT = 1  # as every sandbox numbers it

NR_CLONE, NR_CLONE3, NR_SOCKET, NR_SOCKETPAIR, NR_IOCTL, NR_PERSONALITY = 56, 435, 41, 53, 16, 135

REFUSED = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
    "process_madvise": 440, "process_mrelease": 448, "move_pages": 279, "migrate_pages": 256,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "memfd_secret": 447,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "delete_module": 176, "finit_module": 313,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300, "lookup_dcookie": 212,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "swapon": 167, "swapoff": 168, "acct": 163,
    "quotactl": 179, "quotactl_fd": 443, "reboot": 169, "vhangup": 153, "syslog": 103,
    "iopl": 172, "ioperm": 173, "modify_ldt": 154,
    "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305, "adjtimex": 159,
    "setdomainname": 171, "uselib": 134, "_sysctl": 156, "nfsservctl": 180, "get_robust_list": 274,
}  # fmt: skip
USED_BY_ISOLATION = {
    "unshare": kernel.NR_UNSHARE, "setns": kernel.NR_SETNS, "mount": kernel.NR_MOUNT, "umount2": kernel.NR_UMOUNT2,
    "chroot": 161, "pivot_root": kernel.NR_PIVOT_ROOT, "sethostname": 170,
}  # fmt: skip

BY_PROCESS = {
    "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142, "sched_setattr": 314,
}  # fmt: skip
BY_KIND = {"setpriority": (141, 2), "ioprio_set": (251, 3)}  # with PRIO_USER, IOPRIO_WHO_USER: everybody, the agent too

Instruction = Tuple[int, int, int, int]


def _refuse(code: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _prologue() -> List[Instruction]:
    """Any other architecture's table dies; x32 does not exist. Leaves the number loaded."""
    return [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCH_X86_64),
        (_RETURN, 0, 0, KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]


def _refuse_numbers(numbers: Iterable[int], code: int) -> List[Instruction]:
    """Jump to one shared return; chunked, since a jump's offset has eight bits."""
    program: List[Instruction] = []
    ordered = sorted(numbers)
    for start in range(0, len(ordered), 200):
        chunk = ordered[start : start + 200]
        for index, number in enumerate(chunk):
            left = len(chunk) - index - 1
            program.append((_EQUAL, left, 0 if left else 1, number))
        program.append(_refuse(code))
    return program


def _on_call(number: int, body: Sequence[Instruction]) -> List[Instruction]:
    """Run the body for one call only. The body must return on every path."""
    return [(_EQUAL, 0, len(body), number)] + list(body)


def _allow_only(argument: int, values: Sequence[int], code: int) -> List[Instruction]:
    """Allow the call if the low half of the argument is one of the values."""
    program = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
    for index, value in enumerate(values):
        program.append((_EQUAL, len(values) - index, 0, value))
    return program + [_refuse(code), (_RETURN, 0, 0, ALLOW)]


def _refuse_values(argument: int, values: Sequence[int], code: int) -> List[Instruction]:
    """Refuse the call if the low half of the argument is one of the values."""
    program = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
    for index, value in enumerate(values):
        program.append((_EQUAL, len(values) - index, 0, value))
    return program + [(_RETURN, 0, 0, ALLOW), _refuse(code)]


def _refuse_bits(argument: int, bits: int, code: int) -> List[Instruction]:
    """Refuse the call if the low half of the argument has any of the bits."""
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument), (_ANY_BIT, 0, 1, bits), _refuse(code), (_RETURN, 0, 0, ALLOW)]


def _spare_the_agent() -> List[Instruction]:
    """Limits and priorities of pid 1 are out of reach: it is the same user, and the kernel asks for no more than that.

    An agent without descriptors, memory or turns could not keep time, and its sandbox's result would be our failure.
    """
    program: List[Instruction] = []
    for number in BY_PROCESS.values():
        program += _on_call(number, _refuse_values(0, (_AGENT,), errno.EPERM))
    for number, everybody in BY_KIND.values():
        whose = _refuse_values(1, (_AGENT,), errno.EPERM)
        program += _on_call(
            number, [(_LOAD, 0, 0, _ARGUMENTS), (_EQUAL, 0, 1, everybody), _refuse(errno.EPERM), *whose]
        )
    return program


def _encode(program: Iterable[Instruction]) -> bytes:
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def template_filter() -> bytes:
    """What neither a template nor any of its sandboxes may do."""
    program = _prologue()
    program += [(_AT_LEAST, 0, 1, _NEWEST + 1), _refuse(errno.ENOSYS)]
    program += _on_call(NR_CLONE3, [_refuse(errno.ENOSYS)])
    program += _on_call(NR_CLONE, _refuse_bits(0, _NEW_NAMESPACES, errno.EPERM))
    for number in (NR_SOCKET, NR_SOCKETPAIR):
        program += _on_call(number, _allow_only(0, _FAMILIES, errno.EAFNOSUPPORT))
    program += _on_call(NR_IOCTL, _refuse_values(1, _TTY_INJECTION, errno.EPERM))
    program += _on_call(NR_PERSONALITY, _allow_only(0, _PERSONALITIES, errno.EPERM))
    program += _refuse_numbers(REFUSED.values(), errno.EPERM)
    program += _spare_the_agent()
    return _encode(program + [(_RETURN, 0, 0, ALLOW)])


def sandbox_filter() -> bytes:
    """What a sandbox may no longer do once it has isolated itself."""
    program: List[Instruction] = [(_LOAD, 0, 0, _NUMBER)]  # the template's filter has checked the architecture
    program += _refuse_numbers(USED_BY_ISOLATION.values(), errno.EPERM)
    return _encode(program + [(_RETURN, 0, 0, ALLOW)])
