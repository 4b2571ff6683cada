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
-- Everything that happened to one stay, newest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND ticket = :ticket ORDER BY seq DESC;

-- name: figures
-- What happened to pull requests of these queues since then.
SELECT queue, source, to_state, bisecting, in_state, in_queue, first_run
FROM journal
WHERE kind = 'PrChanged' AND at >= :since AND queue = ANY (:queues::text[])
ORDER BY at, seq;

-- name: entries
-- The journal of a queue behind a place in it, oldest first.
SELECT seq, queue, token, body FROM journal WHERE queue = :queue AND seq > :after ORDER BY seq LIMIT :take;
