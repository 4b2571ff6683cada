-- name: submissions_by_time
-- The newest submissions before an id that were submitted in a period, selected before any body is read.
SELECT body FROM submissions
WHERE row_id IN (
    SELECT row_id FROM submissions INDEXED BY submissions_by_time
    WHERE queue = :queue AND submitted_at >= :since AND submitted_at < :until
        AND submission_id < :before AND (:state IS NULL OR state = :state)
    ORDER BY submission_id DESC LIMIT :take
)
ORDER BY submission_id DESC;

-- name: submissions_by_end
-- As `submissions_by_time`, of those that ended at a time or later. A submission in the queue has no end.
SELECT body FROM submissions
WHERE row_id IN (
    SELECT row_id FROM submissions INDEXED BY submissions_by_end
    WHERE queue = :queue AND ended_at >= :concluded_since AND submitted_at >= :since AND submitted_at < :until
        AND submission_id < :before AND (:state IS NULL OR state = :state)
    ORDER BY submission_id DESC LIMIT :take
)
ORDER BY submission_id DESC;

-- name: concluded_submissions
-- The submissions that ended last, latest first; found by their last entry, because some were submitted long before.
SELECT body
FROM (
    SELECT seq, submission_id FROM journal INDEXED BY journal_of_ends
    WHERE queue = :queue AND kind = 'PullRequestChanged' AND to_state IN ('merged', 'failed', 'cancelled')
    ORDER BY seq DESC LIMIT :take
) AS ends JOIN submissions ON submissions.queue = :queue AND submissions.submission_id = ends.submission_id
ORDER BY ends.seq DESC;

-- name: ended_submissions
-- The submissions of these queues that ended last, in a period. The next page starts after the last one of this page.
SELECT queue, ended_at, submission_id, body FROM submissions INDEXED BY submissions_ended
WHERE ended_at >= :since AND ended_at <= :until
    AND (ended_at, queue, submission_id) < (:until, :before_queue, :before_submission)
    AND queue IN (SELECT value FROM json_each(:queues)) AND (:state IS NULL OR state = :state)
ORDER BY ended_at DESC, queue DESC, submission_id DESC LIMIT :take;

-- name: delete_submission
-- Deletes the record of one submission.
DELETE FROM submissions WHERE queue = :queue AND submission_id = :submission_id AND NOT live;
