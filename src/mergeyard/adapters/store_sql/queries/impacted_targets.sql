-- name: expired_impacted_targets
-- Impacted targets uploaded before a time, of pull requests that are not in the queue.
-- One upload per queue never expires, so that `has_any_impacted_targets` stays true.
SELECT queue, number, head FROM impacted_targets
WHERE at < :before
    AND NOT EXISTS (
        SELECT 1 FROM submissions
        WHERE submissions.queue = impacted_targets.queue AND submissions.number = impacted_targets.number
            AND submissions.live
    )
    AND EXISTS (
        SELECT 1 FROM impacted_targets AS other
        WHERE other.queue = impacted_targets.queue
            AND (other.number, other.head) > (impacted_targets.number, impacted_targets.head)
    )
ORDER BY at LIMIT :take;

-- name: impacted_targets
-- The impacted targets of a head.
SELECT body FROM impacted_targets WHERE queue = :queue AND number = :number AND head = :head;

-- name: has_impacted_targets
-- Whether impacted targets were uploaded for a head.
SELECT EXISTS (SELECT 1 FROM impacted_targets WHERE queue = :queue AND number = :number AND head = :head);
