-- name: submissions_by_time
-- The newest submissions before an id that were submitted in a period, selected before any body is read.
SELECT body FROM submissions
WHERE queue = :queue AND submission_id IN (
    SELECT submission_id FROM submissions
    WHERE queue = :queue AND submitted_at >= :since AND submitted_at < :until
        AND submission_id < :before AND (:state::text IS NULL OR state = :state::text)
    ORDER BY submission_id DESC LIMIT :take
)
ORDER BY submission_id DESC;

-- name: submissions_by_end
-- As `submissions_by_time`, of those that ended at a time or later. A submission in the queue has no end.
SELECT body FROM submissions
WHERE queue = :queue AND submission_id IN (
    SELECT submission_id FROM submissions
    WHERE queue = :queue AND ended_at >= :concluded_since AND submitted_at >= :since AND submitted_at < :until
        AND submission_id < :before AND (:state::text IS NULL OR state = :state::text)
    ORDER BY submission_id DESC LIMIT :take
)
ORDER BY submission_id DESC;

-- name: concluded_submissions
-- The submissions that ended last, latest first; found by their last entry, because some were submitted long before.
SELECT body
FROM (
    SELECT seq, submission_id FROM journal
    WHERE queue = :queue AND kind = 'PullRequestChanged' AND to_state IN ('merged', 'failed', 'cancelled')
    ORDER BY seq DESC LIMIT :take
) AS ends JOIN submissions ON submissions.queue = :queue AND submissions.submission_id = ends.submission_id
ORDER BY ends.seq DESC;

-- name: ended_submissions
-- The submissions of these queues that ended last, in a period. The next page starts after the last one of this page.
SELECT queue, ended_at, submission_id, body FROM submissions
WHERE ended_at >= :since AND ended_at <= :until
    AND (ended_at, queue, submission_id) < (:until::bigint, :before_queue::text, :before_submission::bigint)
    AND queue = ANY (:queues::text[]) AND (:state::text IS NULL OR state = :state::text)
ORDER BY ended_at DESC, queue DESC, submission_id DESC LIMIT :take;

-- name: delete_submissions
-- Deletes the records of submissions, and stores in each queue up to which version records were deleted.
WITH expired AS (
    DELETE FROM submissions USING unnest(:queue::text[], :submission_id::bigint[]) AS expired (queue, submission_id)
    WHERE submissions.queue = expired.queue AND submissions.submission_id = expired.submission_id AND NOT live
    RETURNING submissions.queue, submissions.version
)
UPDATE queues SET deleted_up_to = greatest(deleted_up_to, newest.version)
FROM (SELECT queue, max(version) AS version FROM expired GROUP BY queue) AS newest
WHERE queues.id = newest.queue;
