-- name: save_token
-- Inserts a token, or updates all columns except the last use.
INSERT INTO tokens (id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from)
VALUES (:id, :name, :digest, :scopes, :repos, :created_at, :expires_at, :revoked_at, :last_used_at, :last_used_from)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    digest = excluded.digest,
    scopes = excluded.scopes,
    repos = excluded.repos,
    created_at = excluded.created_at,
    expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at;

-- name: record_token_use
-- Two replicas can record a use of the same token: the later use wins.
UPDATE tokens SET last_used_at = :at, last_used_from = :address
WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :at);

-- name: token
-- The token with this digest.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens WHERE digest = :digest;

-- name: tokens
-- All tokens, oldest first; administrators create them, so there are few.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens ORDER BY created_at, id;

-- name: token_by_id
-- The token with this id.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens WHERE id = :id;
