"""Sealed grading, both halves: the judge, and the candidate that answers its calls."""
