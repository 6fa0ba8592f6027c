"""Hotbed inside other frameworks: one a file, thin, imported only by who uses it."""
