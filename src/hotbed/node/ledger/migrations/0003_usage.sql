-- Usage is kept when the lines it was counted from are gone. A node tells the sums of its run again and again.
CREATE TABLE usage (
    run TEXT NOT NULL,
    tenant TEXT NOT NULL,
    hour INTEGER NOT NULL,
    sandboxes INTEGER NOT NULL,
    rollouts INTEGER NOT NULL,
    execs INTEGER NOT NULL,
    grades INTEGER NOT NULL,
    sandbox_s REAL NOT NULL,
    cpu_s REAL NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    PRIMARY KEY (run, tenant, hour)
);

CREATE INDEX usage_by_hour ON usage (hour, tenant);

-- What is known of the time before: nobody measured CPU then, and of sandboxes only the time of their execs.
INSERT INTO usage
SELECT
    'before', tenant, CAST(at AS INTEGER) / 3600 * 3600,
    sum(CASE WHEN kind = 'create' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'rollout' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'exec' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'grade' THEN 1 ELSE 0 END),
    sum(exec_ms) / 1000, 0, 0, sum(stdout_total + stderr_total)
FROM rollouts GROUP BY tenant, CAST(at AS INTEGER) / 3600 * 3600;
