"""The loader's own calls are found by their code."""

from __future__ import annotations

import subprocess
import sys

from hotbed.guest.agent import loader

OPEN = b"\xb8\x01\x01\x00\x00"  # mov eax, 257
NEAR, FAR = b"\x90" * 5, b"\x90" * 100
CALL = b"\x0f\x05"

SAID = "from hotbed.guest.agent import loader; print(*sorted({number for number, _ in loader.sites()}))"


def test_a_call_is_the_instruction_after_its_number() -> None:
    """Not one that is somewhere else."""
    code = OPEN + CALL + NEAR + OPEN + NEAR + CALL + OPEN + FAR + CALL

    assert loader.behind_calls(code, 257) == [7, 24]
    assert loader.behind_calls(code, 273) == []


def test_this_machines_loader_opens_libraries_and_registers_its_thread() -> None:
    """What a program that uses it does before anything of its own."""
    assert [number in {call for call, _ in loader.sites()} for number in (257, 273)] == [True, True]


def test_there_may_be_no_loader() -> None:
    """Of a static program."""
    assert loader._text_behind(1) == (0, b"")


def test_it_is_found_in_a_process_of_any_kind() -> None:
    """Also in one that was started otherwise."""
    said = subprocess.run([sys.executable, "-c", SAID], capture_output=True, text=True, check=True).stdout

    assert said.split() == ["257", "273"]
