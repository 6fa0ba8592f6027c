"""What runs inside a template or a sandbox. Standard library only, Python 3.8+, imports nothing of ours but itself."""
