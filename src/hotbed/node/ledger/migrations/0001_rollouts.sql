CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    packed INTEGER NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE rollouts (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    tenant TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    label TEXT NOT NULL,
    template TEXT NOT NULL,
    template_digest TEXT NOT NULL,
    seed TEXT NOT NULL,
    determinism TEXT NOT NULL,
    seed_ack TEXT NOT NULL,
    isolation TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    reward REAL,
    request_hash TEXT NOT NULL,
    stdout_hash TEXT NOT NULL,
    stderr_hash TEXT NOT NULL,
    stdout_total INTEGER NOT NULL,
    stderr_total INTEGER NOT NULL,
    fork_ms REAL NOT NULL,
    exec_ms REAL NOT NULL,
    total_ms REAL NOT NULL,
    details TEXT NOT NULL
);

CREATE INDEX rollouts_by_time ON rollouts (at);
CREATE INDEX rollouts_by_sandbox ON rollouts (sandbox_id, seq);
CREATE INDEX rollouts_by_group ON rollouts (group_id, seq);
