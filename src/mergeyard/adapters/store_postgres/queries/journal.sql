-- name: append_entries
-- The next entries. Their numbers are drawn while the row of their queue is locked until the commit, so within one
-- queue a smaller number was visible earlier. Across queues that is not so: a commit that drew early may end late.
INSERT INTO journal (
    queue, at, kind, actor, token, ticket, number, source, to_state, reason,
    bisecting, in_state, in_queue, first_run, body
)
SELECT * FROM unnest(
    :queue::text[], :at::bigint[], :kind::text[], :actor::text[], :token::text[], :ticket::bigint[], :number::bigint[],
    :source::text[], :to::text[], :reason::text[], :bisecting::boolean[], :in_state::bigint[], :in_queue::bigint[],
    :first_run::boolean[], :body::bytea[]
);

-- name: timeline
-- What happened last to one stay, newest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND ticket = :ticket ORDER BY seq DESC LIMIT :take;

-- name: figures
-- What happened to pull requests of these queues in this time.
SELECT queue, at, source, to_state, reason, bisecting, in_state, in_queue, first_run
FROM journal
WHERE kind = 'PrChanged' AND at >= :since AND at < :until AND queue = ANY (:queues::text[])
ORDER BY at, seq;

-- name: entries
-- The journal of a queue behind a place in it, oldest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND seq > :after ORDER BY seq LIMIT :take;

-- name: last_change
-- The entry by which a queue last came into this state out of another one; its settings change in any state.
SELECT body FROM journal
WHERE queue = :queue AND kind = 'QueueChanged' AND to_state = :to AND source <> :to
ORDER BY seq DESC LIMIT 1;

-- name: audit
-- Entries of the whole journal, newest first, each with the queue that it is about.
SELECT seq, host, owner, name, branch, token, body
FROM (
    SELECT seq, queue, token, body
    FROM journal
    WHERE seq < :before
        AND at >= :since AND at < :until
        AND (:number::bigint IS NULL OR number = :number)
        AND (:actor::text IS NULL OR actor = :actor)
        AND (:kind::text IS NULL OR kind = :kind)
        AND (
            (:repos::text[] IS NULL AND :branch::text IS NULL)
            OR queue IN (
                SELECT id
                FROM queues
                WHERE (:repos::text[] IS NULL OR host || '/' || owner || '/' || name = ANY (:repos::text[]))
                    AND (:branch::text IS NULL OR branch = :branch)
            )
        )
    ORDER BY seq DESC
    LIMIT :take
) AS found LEFT JOIN queues ON queues.id = found.queue
ORDER BY seq DESC;

-- name: expired_entries
-- Entries made before that every consumer has read, but none about live submissions or what live queues went through.
SELECT seq FROM journal
WHERE at < :before AND (
    queue IS NULL
    OR (
        NOT EXISTS (
            SELECT 1 FROM tellers LEFT JOIN cursors
                ON cursors.teller = tellers.name AND cursors.queue = journal.queue
            WHERE coalesce(cursors.seq, 0) < journal.seq
        )
        AND NOT coalesce(
            (SELECT live FROM stays WHERE stays.queue = journal.queue AND stays.ticket = journal.ticket), false
        )
        AND (
            kind NOT IN ('QueueCreated', 'QueueChanged')
            OR EXISTS (SELECT 1 FROM queues WHERE queues.id = journal.queue AND deleted_at IS NOT NULL)
        )
    )
)
ORDER BY at LIMIT :take;

-- name: delete_entries
-- These entries.
DELETE FROM journal WHERE seq = ANY (:seq::bigint[]);
