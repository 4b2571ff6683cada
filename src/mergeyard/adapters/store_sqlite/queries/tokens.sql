-- name: save_token
-- New, or as it is now.
INSERT INTO tokens (id, name, digest, scopes, repos, created_at, expires_at, revoked_at)
VALUES (:id, :name, :digest, :scopes, :repos, :created_at, :expires_at, :revoked_at)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    digest = excluded.digest,
    scopes = excluded.scopes,
    repos = excluded.repos,
    created_at = excluded.created_at,
    expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at;

-- name: token
-- The token with this digest.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at FROM tokens WHERE digest = :digest;

-- name: tokens
-- All tokens, oldest first; people made them, so there are few.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id;

-- name: token_of_id
-- The token with this id.
SELECT id, name, digest, scopes, repos, created_at, expires_at, revoked_at FROM tokens WHERE id = :id;
