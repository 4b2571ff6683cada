-- What CI said also names the suite of checks that it belongs to.
ALTER TABLE statuses ADD COLUMN suite TEXT NOT NULL DEFAULT '';

-- Whoever tells others of the journal reads it queue by queue, from where it stopped.
CREATE INDEX journal_of_queue ON journal (queue) WHERE queue IS NOT NULL;

-- Who tells of what happens. What happened before it began is the past, and not told.
CREATE TABLE tellers (
    name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- How far in the journal of a queue somebody told of it, and since when it has been unable to go on.
CREATE TABLE cursors (
    teller TEXT NOT NULL,
    queue TEXT NOT NULL REFERENCES queues,
    seq INTEGER NOT NULL,
    stuck_since INTEGER,
    PRIMARY KEY (teller, queue)
) STRICT, WITHOUT ROWID;

-- What was said on a pull request.
CREATE TABLE conversations (
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

-- The last attempts to send something to a webhook.
CREATE TABLE deliveries (
    place INTEGER PRIMARY KEY,
    webhook TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX deliveries_of_webhook ON deliveries (webhook);
CREATE INDEX deliveries_of_event ON deliveries (webhook, event);
