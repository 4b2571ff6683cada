-- name: live_stays
-- What the queue holds now, in the order of submission.
SELECT body FROM stays WHERE queue = :queue AND live ORDER BY ticket;

-- name: stay
-- One stay.
SELECT body FROM stays WHERE queue = :queue AND ticket = :ticket;

-- name: last_stay
-- The newest stay of a pull request.
SELECT body FROM stays WHERE queue = :queue AND number = :number ORDER BY ticket DESC LIMIT 1;

-- name: last_stay_of_branch
-- The live stay of a head branch, else its newest.
SELECT body FROM stays WHERE queue = :queue AND branch = :branch ORDER BY live DESC, ticket DESC LIMIT 1;

-- name: stays
-- The newest stays before a ticket.
SELECT body FROM stays
WHERE queue = :queue AND ticket < :before
ORDER BY ticket DESC LIMIT :take;

-- name: stays_in_state
-- The newest stays before a ticket that are in this state.
SELECT body FROM stays
WHERE queue = :queue AND state = :state AND ticket < :before
ORDER BY ticket DESC LIMIT :take;

-- name: stays_submitted
-- The newest stays before a ticket that were submitted in this time, chosen before any body is read.
SELECT body FROM stays
WHERE queue = :queue AND ticket IN (
    SELECT ticket FROM stays
    WHERE queue = :queue AND submitted_at >= :since AND submitted_at < :until
        AND ticket < :before AND (:state::text IS NULL OR state = :state::text)
    ORDER BY ticket DESC LIMIT :take
)
ORDER BY ticket DESC;

-- name: concluded_stays
-- The stays that ended last, the latest first: found by their ends, because some stay long.
SELECT body
FROM (
    SELECT seq, ticket FROM journal
    WHERE queue = :queue AND kind = 'PrChanged' AND to_state IN ('merged', 'failed', 'cancelled')
    ORDER BY seq DESC LIMIT :take
) AS ends JOIN stays ON stays.queue = :queue AND stays.ticket = ends.ticket
ORDER BY seq DESC;

-- name: stays_of
-- The last stays of one pull request, the latest first.
SELECT body FROM stays WHERE queue = :queue AND number = :number ORDER BY ticket DESC LIMIT :take;

-- name: expired_stays
-- Stays that left their queue before, the oldest first.
SELECT queue, ticket FROM stays WHERE ended_at < :before ORDER BY ended_at LIMIT :take;

-- name: delete_stays
-- These stays. Each queue knows up to which version records are gone.
WITH expired AS (
    DELETE FROM stays USING unnest(:queue::text[], :ticket::bigint[]) AS expired (queue, ticket)
    WHERE stays.queue = expired.queue AND stays.ticket = expired.ticket AND NOT live
    RETURNING stays.queue, stays.version
)
UPDATE queues SET deleted_up_to = greatest(deleted_up_to, newest.version)
FROM (SELECT queue, max(version) AS version FROM expired GROUP BY queue) AS newest
WHERE queues.id = newest.queue;
