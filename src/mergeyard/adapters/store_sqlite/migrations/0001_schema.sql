-- Times are milliseconds since 1970. The database does not look into a body; the columns next to it serve the queries.

CREATE TABLE queues (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    target_branch TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;

-- A branch has at most one live queue, and any number of deleted ones.
CREATE UNIQUE INDEX queues_live ON queues (host, owner, name, target_branch) WHERE deleted_at IS NULL;

-- The state of a queue, in parts, so that a decision writes only the parts that it changed.
CREATE TABLE queue_parts (
    queue TEXT NOT NULL REFERENCES queues,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (queue, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE submissions (
    row_id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    submission_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    head_branch TEXT NOT NULL,
    state TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    live INTEGER NOT NULL,
    body BLOB NOT NULL,
    -- When the submission left its queue. Retention counts from here.
    ended_at INTEGER,
    UNIQUE (queue, submission_id)
) STRICT;

CREATE INDEX submissions_live ON submissions (queue, submission_id) WHERE live;
CREATE INDEX submissions_of_number ON submissions (queue, number, submission_id);
CREATE INDEX submissions_of_branch ON submissions (queue, head_branch, live, submission_id);
CREATE INDEX submissions_by_time ON submissions (queue, submitted_at, submission_id);
-- Covers the query that selects by the end, so that it reads no body.
CREATE INDEX submissions_by_end ON submissions (queue, ended_at, submission_id, submitted_at, state)
WHERE ended_at IS NOT NULL;
CREATE INDEX submissions_in_state ON submissions (queue, state, submission_id);
CREATE INDEX submissions_ended ON submissions (ended_at, queue, submission_id) WHERE ended_at IS NOT NULL;

CREATE TABLE runs (
    row_id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at INTEGER,
    decided_at INTEGER,
    live INTEGER NOT NULL,
    body BLOB NOT NULL,
    -- How many pull requests the run tests.
    tested_count INTEGER NOT NULL DEFAULT 0,
    -- The commit that a started run tests. Its statuses are reported for this commit.
    tip TEXT,
    -- When the run left its queue. Retention counts from here.
    ended_at INTEGER,
    UNIQUE (queue, id)
) STRICT;

CREATE INDEX runs_live ON runs (queue) WHERE live;
-- Covers the queries that count and page results, so that they read no body.
CREATE INDEX runs_decided ON runs (queue, decided_at, row_id, started_at, tested_count)
WHERE started_at IS NOT NULL AND decided_at IS NOT NULL;
CREATE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_by_tip ON runs (tip) WHERE tip IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

-- Passed runs whose records were deleted: commits on a branch may still name them.
CREATE TABLE deleted_runs (
    queue TEXT NOT NULL REFERENCES queues,
    id TEXT NOT NULL,
    PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    queue TEXT REFERENCES queues,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    token TEXT,
    submission_id INTEGER,
    number INTEGER,
    from_state TEXT,
    to_state TEXT,
    reason TEXT,
    bisecting INTEGER NOT NULL,
    -- Time in the state that the pull request left, and since it was admitted to the queue.
    ms_in_state INTEGER,
    ms_in_queue INTEGER,
    first_run INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- A journal consumer reads one queue's entries, starting after its cursor.
CREATE INDEX journal_of_queue ON journal (queue) WHERE queue IS NOT NULL;
CREATE INDEX journal_of_submission ON journal (queue, submission_id) WHERE submission_id IS NOT NULL;
-- By time alone: entries that many queues append in one transaction are adjacent, so a commit writes few pages.
CREATE INDEX journal_of_pull_requests ON journal (at) WHERE kind = 'PullRequestChanged';
CREATE INDEX journal_by_time ON journal (at);
-- The pages ask often which submissions of a queue ended last, and who paused the queue.
CREATE INDEX journal_of_ends ON journal (queue)
WHERE kind = 'PullRequestChanged' AND to_state IN ('merged', 'failed', 'cancelled');
CREATE INDEX journal_of_queue_changes ON journal (queue) WHERE kind = 'QueueChanged';

CREATE TABLE impacted_targets (
    row_id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    number INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    -- The token that uploaded them. They count against its quota.
    token TEXT,
    UNIQUE (queue, number, head)
) STRICT;

CREATE INDEX impacted_targets_by_token ON impacted_targets (token) WHERE token IS NOT NULL;
CREATE INDEX impacted_targets_by_age ON impacted_targets (at);

CREATE TABLE statuses (
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    sha TEXT NOT NULL,
    context TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    -- The suite of checks that the status belongs to.
    suite TEXT NOT NULL DEFAULT '',
    -- The token that reported a status for a commit that no run tested at that time. NULL once a run tests the commit.
    unclaimed_by TEXT,
    PRIMARY KEY (host, owner, name, sha, context)
) STRICT, WITHOUT ROWID;

CREATE INDEX statuses_unclaimed ON statuses (unclaimed_by, at) WHERE unclaimed_by IS NOT NULL;
CREATE INDEX statuses_unclaimed_by_age ON statuses (at) WHERE unclaimed_by IS NOT NULL;

-- Responses to requests with an idempotency key.
CREATE TABLE responses (
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (token, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX responses_by_age ON responses (at);

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    repos TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    -- The client address of the last use.
    last_used_from TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- Sessions of users who are signed in to the pages.
CREATE TABLE sessions (
    digest BLOB NOT NULL PRIMARY KEY,
    token TEXT REFERENCES tokens,
    name TEXT NOT NULL,
    groups TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Issuer and subject of a user who signed in through an identity provider.
    subject TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sessions_by_token ON sessions (token);

-- Journal consumers. A consumer does not process entries older than its own start.
CREATE TABLE consumers (
    name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- The last journal entry of a queue that a consumer has processed, and since when it fails to process the next one.
CREATE TABLE cursors (
    consumer TEXT NOT NULL,
    queue TEXT NOT NULL REFERENCES queues,
    seq INTEGER NOT NULL,
    stalled_since INTEGER,
    PRIMARY KEY (consumer, queue)
) STRICT, WITHOUT ROWID;

-- The comment thread of a pull request: which comments were written and read.
CREATE TABLE thread_states (
    queue TEXT NOT NULL REFERENCES queues,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (queue, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The latest delivery attempts of each webhook.
CREATE TABLE deliveries (
    row_id INTEGER PRIMARY KEY,
    webhook TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX deliveries_of_webhook ON deliveries (webhook);
CREATE INDEX deliveries_of_event ON deliveries (webhook, event);

-- One row that the health check updates to verify that the database accepts writes.
CREATE TABLE write_probe (counter INTEGER NOT NULL) STRICT;
INSERT INTO write_probe VALUES (0);
