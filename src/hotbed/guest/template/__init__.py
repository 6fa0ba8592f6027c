"""The template process: a warm interpreter that forks sandboxes, and how a fork shuts itself in."""
