-- name: keep_status
-- The latest report for a context counts, whatever its clock says.
INSERT INTO statuses (host, owner, name, sha, context, state, at, url, description, suite)
VALUES (:host, :owner, :name, :sha, :context, :state, :at, :url, :description, :suite)
ON CONFLICT DO UPDATE SET
    state = excluded.state,
    at = excluded.at,
    url = excluded.url,
    description = excluded.description,
    suite = excluded.suite;

-- name: statuses
-- All statuses of a commit.
SELECT context, state, at, url, description, suite FROM statuses
WHERE host = :host AND owner = :owner AND name = :name AND sha = :sha
ORDER BY context;
