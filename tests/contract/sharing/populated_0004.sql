-- A database of form 4 with something of everything. It never changes: later forms must be able to take it over.

INSERT INTO queues (id, host, owner, name, branch, version, created_at, deleted_at) VALUES
    ('q0', 'git.local', 'acme', 'app', 'main', 3, 100, 200),
    ('q1', 'git.local', 'acme', 'app', 'main', 7, 300, NULL);

INSERT INTO facts (queue, shelf, key, body, version) VALUES
    ('q1', 'batch', '1', '{}'::bytea, 6),
    ('q1', 'queue', '', '{}'::bytea, 7);

INSERT INTO dropped (queue, version, shelf, key) VALUES
    ('q1', 5, 'batch', '0');

INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, ended_at, live, body, version) VALUES
    ('q0', 1, 5, 'fix', 'merged', 110, 190, false, 'old stay'::bytea, 3),
    ('q1', 1, 5, 'fix', 'failed', 310, 315, false, 'stay 1'::bytea, 4),
    ('q1', 2, 5, 'fix', 'testing', 320, NULL, true, 'stay 2'::bytea, 7);

INSERT INTO runs (queue, id, status, tested, tip, started_at, decided_at, ended_at, live, body, version) VALUES
    ('q1', 'r1', 'failed', 1, 'bbbb', 311, 315, 315, false, 'run 1'::bytea, 4),
    ('q1', 'r2', 'in_progress', 1, 'cccc', 321, NULL, NULL, true, 'run 2'::bytea, 7);

INSERT INTO deleted_runs (queue, id) VALUES
    ('q1', 'r0');

INSERT INTO journal (
    queue, at, kind, actor, token, ticket, number, source, to_state, reason,
    bisecting, in_state, in_queue, first_run, body
)
VALUES
    ('q1', 310, 'PrChanged', 'ada', 't1', 1, 5, NULL, 'pending', 'submitted', false, NULL, NULL, false, 'one'::bytea),
    ('q1', 311, 'PrChanged', 'mergeyard', NULL, 1, 5, 'pending', 'testing', 'started', false, 1, NULL, true, 'two'::bytea),
    ('q1', 312, 'QueueChanged', 'ada', 't1', NULL, NULL, 'RUNNING', 'PAUSED', 'asked', false, NULL, NULL, false, 'three'::bytea);

INSERT INTO targets (queue, number, head, body, at, token) VALUES
    ('q1', 5, 'aaaa', 'targets'::bytea, 305, 't1');

INSERT INTO statuses (host, owner, name, sha, context, state, at, url, description, suite, unclaimed_by) VALUES
    ('git.local', 'acme', 'app', 'bbbb', 'unit', 'success', 314, '', 'green', 'nightly', NULL);

INSERT INTO answers (token, key, digest, body, at) VALUES
    ('t1', 'k1', '\x00'::bytea, 'answer'::bytea, 310);

INSERT INTO tokens (id, name, digest, scopes, repos, created_at, expires_at, revoked_at) VALUES
    ('t1', 'ci', '\x01'::bytea, '["read","submit"]', '[{"host":"git.local","owner":"acme","name":"app"}]', 90, NULL, NULL);

INSERT INTO replicas (id, until) VALUES
    ('dead', '2020-01-01T00:00:00Z');

INSERT INTO duties (host, owner, name, holder, fence, free_since) VALUES
    ('git.local', 'acme', 'app', 'dead', 4, NULL);

INSERT INTO tellers (name) VALUES
    ('comments');

INSERT INTO cursors (teller, queue, seq, stuck_since) VALUES
    ('comments', 'q0', 0, NULL),
    ('comments', 'q1', 2, 316);

INSERT INTO conversations (queue, number, body) VALUES
    ('q1', 5, 'said'::bytea);

INSERT INTO webhooks (id, version, body) VALUES
    ('w1', 3, 'webhook'::bytea);

INSERT INTO deliveries (webhook, event, body) VALUES
    ('w1', 'e1', 'first'::bytea),
    ('w1', 'e1', 'second'::bytea);

INSERT INTO sessions (digest, token, name, groups, created_at, expires_at) VALUES
    ('\x02'::bytea, 't1', '', '[]', 317, 999),
    ('\x03'::bytea, NULL, 'ada', '["devs","ops"]', 318, 999);
