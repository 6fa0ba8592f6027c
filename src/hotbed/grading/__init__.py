"""Verdicts from plain data: specs, extraction, the judge's protocol, results. Pure, no I/O."""

from hotbed.grading.cases import Case
from hotbed.grading.compare import Compare
from hotbed.grading.extract import Extraction, extract, extract_code
from hotbed.grading.limits import CallLimits
from hotbed.grading.programs import CheckerReward, CommandReward, OutputCompare, StdioCase, StdioReward
from hotbed.grading.seeds import DET_SEED, group_seeds, judge_seed, seed_from_key
from hotbed.grading.specs import PropertyReward, UnitTestReward
from hotbed.grading.verdicts import Check, GradeResult
from hotbed.grading.wire_form import Spec, from_wire, to_wire

__all__ = [
    "CallLimits",
    "Case",
    "Check",
    "CheckerReward",
    "CommandReward",
    "Compare",
    "DET_SEED",
    "Extraction",
    "GradeResult",
    "OutputCompare",
    "PropertyReward",
    "Spec",
    "StdioCase",
    "StdioReward",
    "UnitTestReward",
    "extract",
    "extract_code",
    "from_wire",
    "group_seeds",
    "judge_seed",
    "seed_from_key",
    "to_wire",
]
