-- name: save_token
-- New, or as it is now.
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
-- Two replicas may record a use of the same token: the later one stays.
UPDATE tokens SET last_used_at = :at, last_used_from = :address
WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :at);

-- name: token
-- The token with this digest.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens WHERE digest = :digest;

-- name: tokens
-- All tokens, oldest first; people made them, so there are few.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens ORDER BY created_at, id;

-- name: token_of_id
-- The token with this id.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at, last_used_at, last_used_from
FROM tokens WHERE id = :id;
