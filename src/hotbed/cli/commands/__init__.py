"""One verb a file: `add_parser(commands)` and `run(args) -> int`."""
