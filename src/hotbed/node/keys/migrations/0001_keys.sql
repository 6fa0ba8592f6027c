CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    tier TEXT NOT NULL,
    scopes TEXT NOT NULL,
    label TEXT NOT NULL,
    digest BLOB NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    revoked_at REAL
);

CREATE INDEX keys_by_tenant ON keys (tenant);
