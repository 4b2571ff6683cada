-- name: append_entries
-- Appends entries. Each `seq` is drawn while the row of the entry's queue is locked until the commit, so within one
-- queue an entry is visible before every entry with a higher `seq`. Across queues it is not: a transaction that drew
-- its numbers early can commit late.
INSERT INTO journal (
    queue, at, kind, actor, token, submission_id, number, from_state, to_state, reason,
    bisecting, ms_in_state, ms_in_queue, first_run, body
)
SELECT * FROM unnest(
    :entry_queue::text[], :entry_at::bigint[], :entry_kind::text[], :entry_actor::text[], :entry_token::text[],
    :entry_submission_id::bigint[], :entry_number::bigint[], :entry_source::text[], :entry_to::text[],
    :entry_reason::text[], :entry_bisecting::boolean[], :entry_ms_in_state::bigint[], :entry_ms_in_queue::bigint[],
    :entry_first_run::boolean[], :entry_body::bytea[]
);

-- name: transitions
-- State changes of pull requests of these queues in a period.
SELECT queue, at, from_state, to_state, reason, bisecting, ms_in_state, ms_in_queue, first_run
FROM journal
WHERE kind = 'PullRequestChanged' AND at >= :since AND at < :until AND queue = ANY (:queues::text[])
ORDER BY at, seq;

-- name: last_change
-- The entry with which a queue last entered this state from another one; a change of settings keeps the state.
SELECT body FROM journal
WHERE queue = :queue AND kind = 'QueueChanged' AND to_state = :to_state AND from_state <> :to_state
ORDER BY seq DESC LIMIT 1;

-- name: last_state_entry
-- The last entry about the state of a queue; a change of settings is not one.
SELECT body FROM journal
WHERE queue = :queue AND kind = 'QueueChanged' AND reason <> 'settings_changed'
ORDER BY seq DESC LIMIT 1;

-- name: audit_entries
-- Entries of the whole journal, newest first, each with its queue.
SELECT seq, host, owner, name, target_branch, token, body
FROM (
    SELECT seq, queue, token, body
    FROM journal
    WHERE seq < :before
        AND at >= :since AND at < :until
        AND (:number::bigint IS NULL OR number = :number)
        AND (:actor::text IS NULL OR actor = :actor)
        AND (:without_actor::text IS NULL OR actor <> :without_actor)
        AND (:kind::text IS NULL OR kind = :kind)
        AND (
            (:repos::text[] IS NULL AND :target_branch::text IS NULL)
            OR queue IN (
                SELECT id
                FROM queues
                WHERE (:repos::text[] IS NULL OR host || '/' || owner || '/' || name = ANY (:repos::text[]))
                    AND (:target_branch::text IS NULL OR target_branch = :target_branch)
            )
        )
    ORDER BY seq DESC
    LIMIT :take
) AS found LEFT JOIN queues ON queues.id = found.queue
ORDER BY seq DESC;

-- name: delete_entries
-- Deletes entries.
DELETE FROM journal WHERE seq = ANY (:seq::bigint[]);
