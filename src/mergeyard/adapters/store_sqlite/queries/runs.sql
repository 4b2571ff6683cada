-- name: decided_runs
-- Runs that were started, and decided in a period, latest first.
-- The next page starts at the time and `row_id` of the last run of this one.
SELECT decided_at, row_id, body FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND (decided_at, row_id) < (:until, :before)
ORDER BY decided_at DESC, row_id DESC
LIMIT :take;

-- name: count_results
-- How many pull requests were tested by runs decided in a period, each counted once per run.
SELECT coalesce(sum(tested_count), 0) FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until;

-- name: results
-- The runs of one page of results, latest first, each with the number of results before it.
SELECT earlier, body
FROM (
    SELECT
        row_id, tested_count, decided_at,
        sum(tested_count) OVER (ORDER BY decided_at DESC, row_id DESC ROWS UNBOUNDED PRECEDING)
            - tested_count AS earlier
    FROM runs
    WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until
) AS counted JOIN runs USING (row_id)
WHERE counted.tested_count > 0
    AND earlier < :offset + :take AND earlier + counted.tested_count > :offset
ORDER BY counted.decided_at DESC, counted.row_id DESC;

-- name: record_deleted_run
-- Records the id of a passed run before its record is deleted.
INSERT INTO deleted_runs (queue, id)
SELECT queue, id FROM runs WHERE queue = :queue AND id = :id AND status = 'succeeded'
ON CONFLICT DO NOTHING;

-- name: delete_statuses_of_run
-- Deletes the statuses of the commit that a run tested.
DELETE FROM statuses WHERE (host, owner, name, sha) IN (
    SELECT host, owner, name, tip FROM runs JOIN queues ON queues.id = runs.queue
    WHERE runs.queue = :queue AND runs.id = :id
);

-- name: delete_run
-- Deletes the record of one run.
DELETE FROM runs WHERE queue = :queue AND id = :id;
