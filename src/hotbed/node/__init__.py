"""What a node remembers and promises: sessions, leases, capacity."""
