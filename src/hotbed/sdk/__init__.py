"""The client: standard library only, one I/O-free core with a sync and an asyncio face."""
