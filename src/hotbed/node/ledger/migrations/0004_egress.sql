-- What sandboxes tried on the network, and what was decided. Alike attempts of one moment are one row with a count.
CREATE TABLE egress (
    seq INTEGER PRIMARY KEY,
    entry TEXT NOT NULL,
    at REAL NOT NULL,
    tenant TEXT NOT NULL,
    template TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    rollout_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    port INTEGER NOT NULL,
    method TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL,
    bytes_up INTEGER NOT NULL,
    bytes_down INTEGER NOT NULL,
    leak INTEGER NOT NULL
);

CREATE INDEX egress_by_time ON egress (at);
CREATE INDEX egress_by_entry ON egress (entry);
CREATE INDEX egress_by_sandbox ON egress (sandbox_id, seq) WHERE sandbox_id <> '';
CREATE INDEX egress_by_rollout ON egress (rollout_id, seq) WHERE rollout_id <> '';
CREATE INDEX egress_refused ON egress (verdict, seq) WHERE verdict <> 'allowed';
