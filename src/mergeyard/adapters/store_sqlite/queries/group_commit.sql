-- name: advance_versions
-- Changes one row for every queue whose stored version precedes the given one: compare-and-swap on each version.
UPDATE queues SET version = decision.value ->> 1
FROM json_each(:rows) AS decision
WHERE queues.id = decision.value ->> 0 AND queues.version = (decision.value ->> 1) - 1 AND queues.deleted_at IS NULL;

-- name: save_queue_parts
-- Inserts or replaces parts of queues.
INSERT INTO queue_parts (queue, kind, key, body)
SELECT value ->> 0, value ->> 1, value ->> 2, unhex(value ->> 3) FROM json_each(:rows) WHERE true
ON CONFLICT DO UPDATE SET body = excluded.body;

-- name: delete_queue_parts
-- Deletes parts of queues.
DELETE FROM queue_parts
WHERE (queue, kind, key) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows));

-- name: save_submissions
-- Inserts submissions, or updates their state and body, which touches only one index.
-- Changes no row where the head branch or `live` differs: `move_submissions` updates those.
INSERT INTO submissions (queue, submission_id, number, head_branch, state, submitted_at, ended_at, live, body)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    unhex(value ->> 8)
FROM json_each(:rows) WHERE true
ON CONFLICT (queue, submission_id) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE submissions.head_branch = excluded.head_branch AND submissions.live = excluded.live;

-- name: move_submissions
-- Updates submissions whose head branch changed or that left the queue; number and submit time never change.
UPDATE submissions SET
    head_branch = given.value ->> 3, state = given.value ->> 4, ended_at = given.value ->> 6, live = given.value ->> 7,
    body = unhex(given.value ->> 8)
FROM json_each(:rows) AS given
WHERE submissions.queue = given.value ->> 0 AND submissions.submission_id = given.value ->> 1
AND (submissions.head_branch <> given.value ->> 3 OR submissions.live <> given.value ->> 7);

-- name: append_entries
-- Appends entries; there is one writer at a time, so an entry is visible before every entry with a higher `seq`.
INSERT INTO journal (
    queue, at, kind, actor, token, submission_id, number, from_state, to_state, reason,
    bisecting, ms_in_state, ms_in_queue, first_run, body
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, unhex(value ->> 14)
FROM json_each(:rows);

-- name: save_runs
-- Inserts or replaces runs.
INSERT INTO runs (queue, id, status, tested_count, tip, started_at, decided_at, ended_at, live, body)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    unhex(value ->> 9)
FROM json_each(:rows) WHERE true
ON CONFLICT (queue, id) DO UPDATE SET
    status = excluded.status,
    tested_count = excluded.tested_count,
    tip = excluded.tip,
    started_at = excluded.started_at,
    decided_at = excluded.decided_at,
    ended_at = excluded.ended_at,
    live = excluded.live,
    body = excluded.body;
