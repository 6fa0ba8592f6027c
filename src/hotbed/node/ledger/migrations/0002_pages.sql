-- A page of what was filtered is read from an index in its order, newest first, however many rows do not match.
-- What most rows have is left out: it is found soon without one, and need not be written each time.
CREATE INDEX rollouts_by_kind ON rollouts (kind, seq);
CREATE INDEX rollouts_by_template ON rollouts (template, seq);
CREATE INDEX rollouts_by_status ON rollouts (status, seq) WHERE status <> 'ok';
CREATE INDEX rollouts_by_label ON rollouts (label, seq) WHERE label <> '';
CREATE INDEX rollouts_by_tenant ON rollouts (tenant, seq) WHERE tenant <> '';
CREATE INDEX rollouts_grouped ON rollouts (seq, group_id, tenant) WHERE group_id <> '';
