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
SELECT queues.id, host, owner, name, branch, queues.version FROM runs JOIN queues ON queues.id = runs.queue
WHERE runs.id = :id AND deleted_at IS NULL
LIMIT 1;

-- name: decided_runs
-- Runs that were started and decided in this time, the latest first, from a place among those of the last moment on.
SELECT decided_at, place, body FROM runs
WHERE queue = :queue AND started_at IS NOT NULL
    AND decided_at >= :since AND (decided_at, place) < (:until::bigint, :before::bigint)
ORDER BY decided_at DESC, place DESC
LIMIT :take;

-- name: count_results
-- How many pull requests were tested by runs that were started and decided in this time, each counted once per run.
SELECT coalesce(sum(tested), 0)::bigint FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until;

-- name: results
-- The runs of one page of results, the latest first, with the number of results before each of them.
SELECT earlier, body
FROM (
    SELECT
        place, tested, decided_at,
        sum(tested) OVER (ORDER BY decided_at DESC, place DESC ROWS UNBOUNDED PRECEDING)::bigint - tested AS earlier
    FROM runs
    WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until
) AS counted JOIN runs USING (place)
WHERE counted.tested > 0 AND earlier < :offset::bigint + :take::bigint AND earlier + counted.tested > :offset::bigint
ORDER BY counted.decided_at DESC, counted.place DESC;

-- name: expired_runs
-- Runs that left their queue before, the oldest first.
SELECT queue, id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :take;

-- name: delete_runs
-- These runs and what was reported for the commits that they tested. Those that passed are remembered, and each queue
-- knows up to which version records are gone.
WITH expired AS (
    DELETE FROM runs USING unnest(:queue::text[], :id::text[]) AS expired (queue, id)
    WHERE runs.queue = expired.queue AND runs.id = expired.id AND NOT live
    RETURNING runs.queue, runs.id, runs.status, runs.tip, runs.version
),
passed AS (
    INSERT INTO deleted_runs (queue, id) SELECT queue, id FROM expired WHERE status = 'succeeded'
    ON CONFLICT DO NOTHING
),
reported AS (
    DELETE FROM statuses USING expired JOIN queues ON queues.id = expired.queue
    WHERE statuses.host = queues.host AND statuses.owner = queues.owner AND statuses.name = queues.name
        AND statuses.sha = expired.tip
)
UPDATE queues SET deleted_up_to = greatest(deleted_up_to, newest.version)
FROM (SELECT queue, max(version) AS version FROM expired GROUP BY queue) AS newest
WHERE queues.id = newest.queue;
