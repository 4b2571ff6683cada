-- name: transitions
-- State changes of pull requests of these queues in a period.
SELECT queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run
FROM journal INDEXED BY journal_of_pull_requests
WHERE kind = 'PullRequestChanged' AND at >= :since AND at < :until AND queue IN (SELECT value FROM json_each(:queues))
ORDER BY at, seq;

-- name: last_change
-- The entry with which a queue last entered this state from another one; a change of settings keeps the state.
SELECT body FROM journal INDEXED BY journal_of_queue_changes
WHERE queue = :queue AND kind = 'QueueChanged' AND to_state = :to_state AND from_state <> :to_state
ORDER BY seq DESC LIMIT 1;

-- name: last_state_entry
-- The last entry about the state of a queue; a change of settings is not one.
SELECT body FROM journal INDEXED BY journal_of_queue_changes
WHERE queue = :queue AND kind = 'QueueChanged' AND reason <> 'settings_changed'
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
        AND (:without_actor IS NULL OR actor <> :without_actor)
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

-- name: delete_entry
-- Deletes one entry.
DELETE FROM journal WHERE seq = :seq;
