-- name: decided_runs
-- Runs that were started, and decided in a period, latest first.
-- The next page starts at the time and `row_id` of the last run of this one.
SELECT decided_at, row_id, body FROM runs
WHERE queue = :queue AND started_at IS NOT NULL
    AND decided_at >= :since AND (decided_at, row_id) < (:until::bigint, :before::bigint)
ORDER BY decided_at DESC, row_id DESC
LIMIT :take;

-- name: count_results
-- How many pull requests were tested by runs decided in a period, each counted once per run.
SELECT coalesce(sum(tested_count), 0)::bigint FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until;

-- name: results
-- The runs of one page of results, latest first, each with the number of results before it.
SELECT earlier, body
FROM (
    SELECT
        row_id, tested_count, decided_at,
        sum(tested_count) OVER (ORDER BY decided_at DESC, row_id DESC ROWS UNBOUNDED PRECEDING)::bigint
            - tested_count AS earlier
    FROM runs
    WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until
) AS counted JOIN runs USING (row_id)
WHERE counted.tested_count > 0
    AND earlier < :offset::bigint + :take::bigint AND earlier + counted.tested_count > :offset::bigint
ORDER BY counted.decided_at DESC, counted.row_id DESC;

-- name: delete_runs
-- Deletes the records of runs and the statuses of the commits that they tested. Records the ids of passed runs, and
-- stores in each queue up to which version records were deleted.
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
