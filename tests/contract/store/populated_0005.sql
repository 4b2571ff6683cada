-- A database of form 5 with something of everything. It never changes: later forms must be able to take it over.

INSERT INTO queues (id, host, owner, name, branch, version, created_at, deleted_at) VALUES
    ('q0', 'git.local', 'acme', 'app', 'main', 3, 100, 200),
    ('q1', 'git.local', 'acme', 'app', 'main', 7, 300, NULL);

INSERT INTO facts (queue, shelf, key, body) VALUES
    ('q1', 'batch', '1', X'7B7D'),
    ('q1', 'queue', '', X'7B7D');

INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, ended_at, live, body) VALUES
    ('q0', 1, 5, 'fix', 'merged', 110, 190, 0, CAST('old stay' AS BLOB)),
    ('q1', 1, 5, 'fix', 'failed', 310, 315, 0, CAST('stay 1' AS BLOB)),
    ('q1', 2, 5, 'fix', 'testing', 320, NULL, 1, CAST('stay 2' AS BLOB));

INSERT INTO runs (queue, id, status, tested, tip, started_at, decided_at, ended_at, live, body) VALUES
    ('q1', 'r1', 'failed', 1, 'bbbb', 311, 315, 315, 0, CAST('run 1' AS BLOB)),
    ('q1', 'r2', 'in_progress', 1, 'cccc', 321, NULL, NULL, 1, CAST('run 2' AS BLOB));

INSERT INTO deleted_runs (queue, id) VALUES
    ('q1', 'r0');

INSERT INTO journal (
    queue, at, kind, actor, token, ticket, number, source, to_state, reason,
    bisecting, in_state, in_queue, first_run, body
)
VALUES
    ('q1', 310, 'PrChanged', 'ada', 't1', 1, 5, NULL, 'pending', 'submitted', 0, NULL, NULL, 0, CAST('one' AS BLOB)),
    ('q1', 311, 'PrChanged', 'mergeyard', NULL, 1, 5, 'pending', 'testing', 'started', 0, 1, NULL, 1, CAST('two' AS BLOB)),
    ('q1', 312, 'QueueChanged', 'ada', 't1', NULL, NULL, 'RUNNING', 'PAUSED', 'asked', 0, NULL, NULL, 0, CAST('three' AS BLOB));

INSERT INTO targets (queue, number, head, body, at, token) VALUES
    ('q1', 5, 'aaaa', CAST('targets' AS BLOB), 305, 't1');

INSERT INTO statuses (host, owner, name, sha, context, state, at, url, description, suite, unclaimed_by) VALUES
    ('git.local', 'acme', 'app', 'bbbb', 'unit', 'success', 314, '', 'green', 'nightly', NULL);

INSERT INTO answers (token, key, digest, body, at) VALUES
    ('t1', 'k1', X'00', CAST('answer' AS BLOB), 310);

INSERT INTO tokens (id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from) VALUES
    ('t1', 'ci', X'01', '["read","submit"]', '[{"host":"git.local","owner":"acme","name":"app"}]', 90, NULL, NULL, 319, '192.0.2.7');

INSERT INTO tellers (name) VALUES
    ('comments');

INSERT INTO cursors (teller, queue, seq, stuck_since) VALUES
    ('comments', 'q0', 0, NULL),
    ('comments', 'q1', 2, 316);

INSERT INTO conversations (queue, number, body) VALUES
    ('q1', 5, CAST('said' AS BLOB));

INSERT INTO webhooks (id, version, body) VALUES
    ('w1', 3, CAST('webhook' AS BLOB));

INSERT INTO deliveries (webhook, event, body) VALUES
    ('w1', 'e1', CAST('first' AS BLOB)),
    ('w1', 'e1', CAST('second' AS BLOB));

INSERT INTO sessions (digest, token, name, subject, groups, created_at, expires_at) VALUES
    (X'02', 't1', '', '', '[]', 317, 999),
    (X'03', NULL, 'ada', 'https://id 7', '["devs","ops"]', 318, 999);
