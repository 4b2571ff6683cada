-- name: save_stay
-- New, or in another state, which leaves all indexes but one alone; to another branch or out of the queue it is moved.
INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, ended_at, live, body)
VALUES (:queue, :ticket, :number, :branch, :state, :submitted_at, :ended_at, :live, :body)
ON CONFLICT (queue, ticket) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE stays.branch = excluded.branch AND stays.live = excluded.live;

-- name: move_stay
-- To another branch, or out of the queue. A ticket keeps its number and the time of its submission.
UPDATE stays SET branch = :branch, state = :state, ended_at = :ended_at, live = :live, body = :body
WHERE queue = :queue AND ticket = :ticket;

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
WHERE place IN (
    SELECT place FROM stays INDEXED BY stays_submitted
    WHERE queue = :queue AND submitted_at >= :since AND submitted_at < :until
        AND ticket < :before AND (:state IS NULL OR state = :state)
    ORDER BY ticket DESC LIMIT :take
)
ORDER BY ticket DESC;

-- name: concluded_stays
-- The stays that ended last, the latest first: found by their ends, because some stay long.
SELECT body
FROM (
    SELECT seq, ticket FROM journal INDEXED BY journal_of_ends
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

-- name: delete_stay
-- The record of one stay.
DELETE FROM stays WHERE queue = :queue AND ticket = :ticket AND NOT live;
