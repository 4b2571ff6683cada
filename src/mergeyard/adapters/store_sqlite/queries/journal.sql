-- name: append_entry
-- The next entry; there is one writer at a time, so a smaller number was always visible earlier.
INSERT INTO journal (
    queue, at, kind, actor, token, ticket, number, source, to_state, reason,
    bisecting, in_state, in_queue, first_run, body
)
VALUES (
    :queue, :at, :kind, :actor, :token, :ticket, :number, :source, :to, :reason,
    :bisecting, :in_state, :in_queue, :first_run, :body
);

-- name: timeline
-- Everything that happened to one stay, newest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND ticket = :ticket ORDER BY seq DESC;

-- name: figures
-- What happened to pull requests of these queues since then.
SELECT queue, source, to_state, bisecting, in_state, in_queue, first_run
FROM journal INDEXED BY journal_of_pull_requests
WHERE kind = 'PrChanged' AND at >= :since AND queue IN (SELECT value FROM json_each(:queues))
ORDER BY at, seq;

-- name: entries
-- The journal of a queue behind a place in it, oldest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND seq > :after ORDER BY seq LIMIT :take;
