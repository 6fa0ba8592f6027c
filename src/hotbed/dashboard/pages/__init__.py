"""One page or one group of pages a file: a coroutine function of a `Look` that answers a `Page`."""
