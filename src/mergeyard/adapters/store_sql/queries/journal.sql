-- name: timeline
-- The latest entries about one submission, newest first.
SELECT seq, queue, token, body FROM journal
WHERE queue = :queue AND submission_id = :submission_id
ORDER BY seq DESC LIMIT :take;

-- name: entries
-- The entries of a queue after a cursor, oldest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND seq > :after ORDER BY seq LIMIT :take;

-- name: expired_entries
-- Entries older than a time that every consumer has read.
-- Entries about live submissions, and the creation and changes of live queues, do not expire.
SELECT seq FROM journal
WHERE at < :before AND (
    queue IS NULL
    OR (
        NOT EXISTS (
            SELECT 1 FROM consumers LEFT JOIN cursors
                ON cursors.consumer = consumers.name AND cursors.queue = journal.queue
            WHERE coalesce(cursors.seq, 0) < journal.seq
        )
        AND NOT coalesce(
            (
                SELECT live FROM submissions
                WHERE submissions.queue = journal.queue AND submissions.submission_id = journal.submission_id
            ),
            false
        )
        AND (
            kind NOT IN ('QueueCreated', 'QueueChanged')
            OR EXISTS (SELECT 1 FROM queues WHERE queues.id = journal.queue AND deleted_at IS NOT NULL)
        )
    )
)
ORDER BY at LIMIT :take;
