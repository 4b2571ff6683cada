-- Who is signed in to the pages.
CREATE TABLE sessions (
    digest BLOB NOT NULL PRIMARY KEY,
    token TEXT REFERENCES tokens,
    name TEXT NOT NULL,
    groups TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sessions_by_token ON sessions (token);

-- People look at who left a queue last, and at who paused it, again and again.
CREATE INDEX journal_of_ends ON journal (queue)
WHERE kind = 'PrChanged' AND to_state IN ('merged', 'failed', 'cancelled');
CREATE INDEX journal_of_queue_changes ON journal (queue) WHERE kind = 'QueueChanged';
