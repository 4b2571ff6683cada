-- Instants are milliseconds since 1970. Bodies are opaque here; the columns beside them are what queries ask for.

CREATE TABLE queues (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    branch TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;

-- A branch has one queue at a time, and may have had others.
CREATE UNIQUE INDEX queues_live ON queues (host, owner, name, branch) WHERE deleted_at IS NULL;

CREATE TABLE facts (
    queue TEXT NOT NULL REFERENCES queues,
    shelf TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (queue, shelf, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE stays (
    place INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    ticket INTEGER NOT NULL,
    number INTEGER NOT NULL,
    branch TEXT NOT NULL,
    state TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    live INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (queue, ticket)
) STRICT;

CREATE INDEX stays_live ON stays (queue, ticket) WHERE live;
CREATE INDEX stays_of_number ON stays (queue, number, ticket);
CREATE INDEX stays_of_branch ON stays (queue, branch, live, ticket);
CREATE INDEX stays_submitted ON stays (queue, submitted_at, ticket);
CREATE INDEX stays_in_state ON stays (queue, state, ticket);

CREATE TABLE runs (
    place INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at INTEGER,
    decided_at INTEGER,
    live INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (queue, id)
) STRICT;

CREATE INDEX runs_live ON runs (queue) WHERE live;
CREATE INDEX runs_decided ON runs (queue, decided_at) WHERE started_at IS NOT NULL AND decided_at IS NOT NULL;

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    queue TEXT REFERENCES queues,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    token TEXT,
    ticket INTEGER,
    number INTEGER,
    source TEXT,
    to_state TEXT,
    reason TEXT,
    bisecting INTEGER NOT NULL,
    in_state INTEGER,
    in_queue INTEGER,
    first_run INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX journal_of_stay ON journal (queue, ticket) WHERE ticket IS NOT NULL;

-- By time alone: what is appended by many queues at once then lies together, and costs one write instead of many.
CREATE INDEX journal_of_pull_requests ON journal (at) WHERE kind = 'PrChanged';

CREATE TABLE targets (
    place INTEGER PRIMARY KEY,
    queue TEXT NOT NULL REFERENCES queues,
    number INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (queue, number, head)
) STRICT;

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
    PRIMARY KEY (host, owner, name, sha, context)
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (token, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_age ON answers (at);

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    repos TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- One row that is rewritten to see whether writing works.
CREATE TABLE pulse (beat INTEGER NOT NULL) STRICT;
INSERT INTO pulse VALUES (0);
