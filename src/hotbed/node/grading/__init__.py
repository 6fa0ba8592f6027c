"""Grading on a node: candidates in sandboxes of their own, verdicts formed where none of their bytes run."""
