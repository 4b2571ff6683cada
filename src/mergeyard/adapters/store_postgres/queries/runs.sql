-- name: live_runs
-- What the queue has not let go of, in the order of planning.
SELECT body FROM runs WHERE queue = :queue AND live ORDER BY place;

-- name: run
-- One run, live or not.
SELECT body FROM runs WHERE queue = :queue AND id = :id;

-- name: decided_runs
-- Runs that were started and decided in this time, the latest first.
SELECT body FROM runs
WHERE queue = :queue AND started_at IS NOT NULL AND decided_at >= :since AND decided_at < :until
ORDER BY decided_at DESC, place DESC;
