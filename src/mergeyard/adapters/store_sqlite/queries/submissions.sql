-- name: save_submission
-- Inserts a submission, or updates its state and body, which touches only one index.
-- Changes no row when the head branch or `live` differs: `move_submission` updates those.
INSERT INTO submissions (queue, submission_id, number, head_branch, state, submitted_at, ended_at, live, body)
VALUES (:queue, :submission_id, :number, :head_branch, :state, :submitted_at, :ended_at, :live, :body)
ON CONFLICT (queue, submission_id) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE submissions.head_branch = excluded.head_branch AND submissions.live = excluded.live;

-- name: move_submission
-- Updates a submission whose head branch changed or that left the queue; number and submit time never change.
UPDATE submissions SET head_branch = :head_branch, state = :state, ended_at = :ended_at, live = :live, body = :body
WHERE queue = :queue AND submission_id = :submission_id;

-- name: live_submissions
-- The submissions in the queue, in the order in which they were submitted.
SELECT body FROM submissions WHERE queue = :queue AND live ORDER BY submission_id;

-- name: submission
-- One submission.
SELECT body FROM submissions WHERE queue = :queue AND submission_id = :submission_id;

-- name: last_submission
-- The newest submission of a pull request.
SELECT body FROM submissions WHERE queue = :queue AND number = :number ORDER BY submission_id DESC LIMIT 1;

-- name: last_submission_of_branch
-- The live submission of a head branch, else the newest.
SELECT body FROM submissions WHERE queue = :queue AND head_branch = :head_branch
ORDER BY live DESC, submission_id DESC LIMIT 1;

-- name: submissions
-- The newest submissions before an id.
SELECT body FROM submissions
WHERE queue = :queue AND submission_id < :before
ORDER BY submission_id DESC LIMIT :take;

-- name: submissions_in_state
-- The newest submissions before an id that are in this state.
SELECT body FROM submissions
WHERE queue = :queue AND state = :state AND submission_id < :before
ORDER BY submission_id DESC LIMIT :take;

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

-- name: submissions_of
-- The last submissions of one pull request, latest first.
SELECT body FROM submissions WHERE queue = :queue AND number = :number ORDER BY submission_id DESC LIMIT :take;

-- name: expired_submissions
-- Submissions that left their queue before a time, oldest first.
SELECT queue, submission_id FROM submissions WHERE ended_at < :before ORDER BY ended_at LIMIT :take;

-- name: delete_submission
-- Deletes the record of one submission.
DELETE FROM submissions WHERE queue = :queue AND submission_id = :submission_id AND NOT live;
