"""Verdicts from plain data: pure, no I/O."""
