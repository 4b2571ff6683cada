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

-- name: submissions_of
-- The last submissions of one pull request, latest first.
SELECT body FROM submissions WHERE queue = :queue AND number = :number ORDER BY submission_id DESC LIMIT :take;

-- name: expired_submissions
-- Submissions that left their queue before a time, oldest first.
SELECT queue, submission_id FROM submissions WHERE ended_at < :before ORDER BY ended_at LIMIT :take;
