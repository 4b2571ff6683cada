-- name: save_status
-- Stores the latest report for a context: the last one received counts, whatever time it carries.
INSERT INTO statuses (host, owner, name, sha, context, state, at, url, description, suite, unclaimed_by)
VALUES (
    :host, :owner, :name, :sha, :context, :state, :at, :url, :description, :suite,
    CASE WHEN NOT EXISTS (SELECT 1 FROM runs WHERE tip = :sha) THEN :token END
)
ON CONFLICT DO UPDATE SET
    state = excluded.state,
    at = excluded.at,
    url = excluded.url,
    description = excluded.description,
    suite = excluded.suite,
    unclaimed_by = excluded.unclaimed_by;

-- name: delete_oldest_unclaimed_statuses
-- Deletes a token's statuses of commits that no run tests, except those reported last.
DELETE FROM statuses WHERE (host, owner, name, sha, context) IN (
    SELECT host, owner, name, sha, context FROM statuses
    WHERE unclaimed_by = :token ORDER BY at DESC LIMIT -1 OFFSET :kept
);

-- name: claim_status
-- Marks a status whose commit a run now tests, so that it is kept as long as the run.
UPDATE statuses SET unclaimed_by = NULL
WHERE host = :host AND owner = :owner AND name = :name AND sha = :sha AND context = :context
    AND EXISTS (SELECT 1 FROM runs WHERE tip = :sha);

-- name: delete_status
-- Deletes one status, unless a run tests its commit or it was reported again.
DELETE FROM statuses
WHERE host = :host AND owner = :owner AND name = :name AND sha = :sha AND context = :context
    AND unclaimed_by IS NOT NULL AND at < :before;
