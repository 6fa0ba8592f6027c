"""The abuse table: for each claim of docs/threat-model.md, an attempt to break it on this host.

`hotbed doctor --self-check` and tests/escape run the same attempts.
"""
