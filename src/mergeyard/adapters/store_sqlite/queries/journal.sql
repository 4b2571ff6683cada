-- name: append_entry
-- Appends one entry; there is one writer at a time, so an entry is visible before every entry with a higher `seq`.
INSERT INTO journal (
    queue, at, kind, actor, token, submission_id, number, from_state, to_state, reason,
    bisecting, ms_in_state, ms_in_queue, first_run, body
)
VALUES (
    :queue, :at, :kind, :actor, :token, :submission_id, :number, :from_state, :to_state, :reason,
    :bisecting, :ms_in_state, :ms_in_queue, :first_run, :body
);

-- name: timeline
-- The latest entries about one submission, newest first.
SELECT seq, queue, token, body FROM journal
WHERE queue = :queue AND submission_id = :submission_id
ORDER BY seq DESC LIMIT :take;

-- name: transitions
-- State changes of pull requests of these queues in a period.
SELECT queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run
FROM journal INDEXED BY journal_of_pull_requests
WHERE kind = 'PullRequestChanged' AND at >= :since AND at < :until AND queue IN (SELECT value FROM json_each(:queues))
ORDER BY at, seq;

-- name: entries
-- The entries of a queue after a cursor, oldest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND seq > :after ORDER BY seq LIMIT :take;

-- name: last_change
-- The entry with which a queue last entered this state from another one; a change of settings keeps the state.
SELECT body FROM journal INDEXED BY journal_of_queue_changes
WHERE queue = :queue AND kind = 'QueueChanged' AND to_state = :to_state AND from_state <> :to_state
ORDER BY seq DESC LIMIT 1;

-- name: audit_entries
-- Entries of the whole journal, newest first, each with its queue.
SELECT seq, host, owner, name, target_branch, token, body
FROM (
    SELECT seq, queue, token, body
    FROM journal
    WHERE seq < :before
        AND +at >= :since AND +at < :until
        AND (:number IS NULL OR number = :number)
        AND (:actor IS NULL OR actor = :actor)
        AND (:kind IS NULL OR kind = :kind)
        AND (
            (:repos IS NULL AND :target_branch IS NULL)
            OR queue IN (
                SELECT id
                FROM queues
                WHERE (:repos IS NULL OR host || '/' || owner || '/' || name IN (SELECT value FROM json_each(:repos)))
                    AND (:target_branch IS NULL OR target_branch = :target_branch)
            )
        )
    ORDER BY seq DESC
    LIMIT :take
) AS found LEFT JOIN queues ON queues.id = found.queue
ORDER BY seq DESC;

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

-- name: delete_entry
-- Deletes one entry.
DELETE FROM journal WHERE seq = :seq;
