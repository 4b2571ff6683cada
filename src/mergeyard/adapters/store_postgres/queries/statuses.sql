-- name: save_status
-- Stores the latest report for a context: the last one received counts, whatever time it carries.
INSERT INTO statuses (host, owner, name, sha, context, state, at, url, description, suite, unclaimed_by)
VALUES (
    :host, :owner, :name, :sha, :context, :state, :at, :url, :description, :suite,
    CASE WHEN NOT EXISTS (SELECT 1 FROM runs WHERE tip = :sha) THEN :token::text END
)
ON CONFLICT (host, owner, name, sha, context) DO UPDATE SET
    state = excluded.state,
    at = excluded.at,
    url = excluded.url,
    description = excluded.description,
    suite = excluded.suite,
    unclaimed_by = excluded.unclaimed_by;

-- name: delete_oldest_unclaimed_statuses
-- Deletes a token's statuses of commits that no run tests, except those reported last. Skips rows that another
-- transaction is deleting.
WITH oldest AS (
    SELECT host, owner, name, sha, context FROM statuses
    WHERE unclaimed_by = :token ORDER BY at DESC OFFSET :kept
    FOR UPDATE SKIP LOCKED
)
DELETE FROM statuses USING oldest
WHERE statuses.host = oldest.host AND statuses.owner = oldest.owner AND statuses.name = oldest.name
    AND statuses.sha = oldest.sha AND statuses.context = oldest.context;

-- name: delete_statuses
-- Deletes statuses, unless they were reported again. A status whose commit a run now tests is kept as long as the run.
WITH expired AS (
    SELECT * FROM unnest(:host::text[], :owner::text[], :name::text[], :sha::text[], :context::text[])
        AS expired (host, owner, name, sha, context)
),
claimed AS (
    UPDATE statuses SET unclaimed_by = NULL FROM expired
    WHERE statuses.host = expired.host AND statuses.owner = expired.owner AND statuses.name = expired.name
        AND statuses.sha = expired.sha AND statuses.context = expired.context
        AND EXISTS (SELECT 1 FROM runs WHERE tip = statuses.sha)
)
DELETE FROM statuses USING expired
WHERE statuses.host = expired.host AND statuses.owner = expired.owner AND statuses.name = expired.name
    AND statuses.sha = expired.sha AND statuses.context = expired.context
    AND unclaimed_by IS NOT NULL AND at < :before
    AND NOT EXISTS (SELECT 1 FROM runs WHERE tip = statuses.sha);
