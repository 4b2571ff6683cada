-- name: save_run
-- New, or as it is now.
INSERT INTO runs (queue, id, status, tested, tip, started_at, decided_at, ended_at, live, body)
VALUES (:queue, :id, :status, :tested, :tip, :started_at, :decided_at, :ended_at, :live, :body)
ON CONFLICT (queue, id) DO UPDATE SET
    status = excluded.status,
    tested = excluded.tested,
    tip = excluded.tip,
    started_at = excluded.started_at,
    decided_at = excluded.decided_at,
    ended_at = excluded.ended_at,
    live = excluded.live,
    body = excluded.body;

-- name: live_runs
-- What the queue has not let go of, in the order of planning.
SELECT body FROM runs WHERE queue = :queue AND live ORDER BY place;

-- name: run
-- One run, live or not.
SELECT body FROM runs WHERE queue = :queue AND id = :id;

-- name: had_run
-- Whether a queue has a run, or had it until its record was deleted.
SELECT EXISTS (SELECT 1 FROM runs WHERE queue = :queue AND id = :id)
    OR EXISTS (SELECT 1 FROM deleted_runs WHERE queue = :queue AND id = :id);

-- name: queue_of_run
-- The live queue that a run belongs to.
SELECT queues.id, host, owner, name, branch, version FROM runs JOIN queues ON queues.id = runs.queue
WHERE runs.id = :id AND deleted_at IS NULL
LIMIT 1;

-- name: decided_runs
-- Runs that were started and decided in this time, the latest first, from a place among those of the last moment on.
SELECT decided_at, place, body FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND (decided_at, place) < (:until, :before)
ORDER BY decided_at DESC, place DESC
LIMIT :take;

-- name: count_results
-- How many pull requests were tested by runs that were started and decided in this time, each counted once per run.
SELECT coalesce(sum(tested), 0) FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until;

-- name: results
-- The runs of one page of results, the latest first, with the number of results before each of them.
SELECT earlier, body
FROM (
    SELECT
        place, tested, decided_at,
        sum(tested) OVER (ORDER BY decided_at DESC, place DESC ROWS UNBOUNDED PRECEDING) - tested AS earlier
    FROM runs
    WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until
) AS counted JOIN runs USING (place)
WHERE counted.tested > 0 AND earlier < :offset + :take AND earlier + counted.tested > :offset
ORDER BY counted.decided_at DESC, counted.place DESC;

-- name: expired_runs
-- Runs that left their queue before, the oldest first.
SELECT queue, id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :take;

-- name: remember_passed_run
-- Its record is about to be deleted.
INSERT INTO deleted_runs (queue, id)
SELECT queue, id FROM runs WHERE queue = :queue AND id = :id AND status = 'succeeded'
ON CONFLICT DO NOTHING;

-- name: delete_statuses_of_run
-- All that was reported for the commit that a run tested.
DELETE FROM statuses WHERE (host, owner, name, sha) IN (
    SELECT host, owner, name, tip FROM runs JOIN queues ON queues.id = runs.queue
    WHERE runs.queue = :queue AND runs.id = :id
);

-- name: delete_run
-- The record of one run.
DELETE FROM runs WHERE queue = :queue AND id = :id;
