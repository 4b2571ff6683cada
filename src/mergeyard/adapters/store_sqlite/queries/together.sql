-- name: take_turns
-- Changes a row for every queue of which nobody else took this turn.
UPDATE queues SET version = turn.value ->> 1
FROM json_each(:rows) AS turn
WHERE queues.id = turn.value ->> 0 AND queues.version = (turn.value ->> 1) - 1 AND queues.deleted_at IS NULL;

-- name: keep_facts
-- New, or in place of what was there.
INSERT INTO facts (queue, shelf, key, body)
SELECT value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS BLOB) FROM json_each(:rows) WHERE true
ON CONFLICT DO UPDATE SET body = excluded.body;

-- name: drop_facts_of_turns
-- They are there no more.
DELETE FROM facts WHERE (queue, shelf, key) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows));

-- name: save_stays
-- New, or in another state, which leaves all indexes but one alone; to another branch or out of the queue they are moved.
INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, ended_at, live, body)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    CAST(value ->> 8 AS BLOB)
FROM json_each(:rows) WHERE true
ON CONFLICT (queue, ticket) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE stays.branch = excluded.branch AND stays.live = excluded.live;

-- name: move_stays
-- To another branch, or out of the queue. A ticket keeps its number and the time of its submission.
UPDATE stays SET
    branch = stay.value ->> 3, state = stay.value ->> 4, ended_at = stay.value ->> 6, live = stay.value ->> 7,
    body = CAST(stay.value ->> 8 AS BLOB)
FROM json_each(:rows) AS stay
WHERE stays.queue = stay.value ->> 0 AND stays.ticket = stay.value ->> 1
AND (stays.branch <> stay.value ->> 3 OR stays.live <> stay.value ->> 7);

-- name: append_entries
-- The next entries; there is one writer at a time, so a smaller number was always visible earlier.
INSERT INTO journal (
    queue, at, kind, actor, token, ticket, number, source, to_state, reason,
    bisecting, in_state, in_queue, first_run, body
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, CAST(value ->> 14 AS BLOB)
FROM json_each(:rows);

-- name: save_runs
-- New, or as they are now.
INSERT INTO runs (queue, id, status, tested, tip, started_at, decided_at, ended_at, live, body)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    CAST(value ->> 9 AS BLOB)
FROM json_each(:rows) WHERE true
ON CONFLICT (queue, id) DO UPDATE SET
    status = excluded.status,
    tested = excluded.tested,
    tip = excluded.tip,
    started_at = excluded.started_at,
    decided_at = excluded.decided_at,
    ended_at = excluded.ended_at,
    live = excluded.live,
    body = excluded.body;
