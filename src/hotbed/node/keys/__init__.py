"""Keys: what a client shows to be let in, and the tenant, tier and scopes that it stands for."""
