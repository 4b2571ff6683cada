-- name: live_runs
-- The runs that are part of the queue's state, in the order in which they were planned.
SELECT body FROM runs WHERE queue = :queue AND live ORDER BY row_id;

-- name: run
-- One run, live or not.
SELECT body FROM runs WHERE queue = :queue AND id = :id;

-- name: had_run
-- Whether a queue has a run, or had it until its record was deleted.
SELECT EXISTS (SELECT 1 FROM runs WHERE queue = :queue AND id = :id)
    OR EXISTS (SELECT 1 FROM deleted_runs WHERE queue = :queue AND id = :id);

-- name: queue_of_run
-- The live queue of a run.
SELECT queues.id, host, owner, name, target_branch, queues.version FROM runs JOIN queues ON queues.id = runs.queue
WHERE runs.id = :id AND deleted_at IS NULL
LIMIT 1;

-- name: expired_runs
-- Runs that left their queue before a time, oldest first.
SELECT queue, id FROM runs WHERE ended_at < :before ORDER BY ended_at LIMIT :take;
