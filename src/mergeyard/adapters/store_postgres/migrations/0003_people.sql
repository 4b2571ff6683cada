-- Who is signed in to the pages.
CREATE TABLE sessions (
    digest BYTEA NOT NULL PRIMARY KEY,
    token TEXT COLLATE "C" REFERENCES tokens,
    name TEXT COLLATE "C" NOT NULL,
    groups TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sessions_by_token ON sessions (token);

-- People look at who left a queue last, and at who paused it, again and again.
CREATE INDEX journal_of_ends ON journal (queue, seq)
WHERE kind = 'PrChanged' AND to_state IN ('merged', 'failed', 'cancelled');
CREATE INDEX journal_of_queue_changes ON journal (queue, seq) WHERE kind = 'QueueChanged';
