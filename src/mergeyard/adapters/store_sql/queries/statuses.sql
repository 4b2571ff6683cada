-- name: statuses
-- All statuses of a commit.
SELECT context, state, at, url, description, suite FROM statuses
WHERE host = :host AND owner = :owner AND name = :name AND sha = :sha
ORDER BY context;

-- name: expired_statuses
-- Statuses reported before a time for commits that no run is known to test, oldest first.
SELECT host, owner, name, sha, context FROM statuses
WHERE unclaimed_by IS NOT NULL AND at < :before
ORDER BY at LIMIT :take;
