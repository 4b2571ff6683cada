-- name: save_session
-- Stores the session of a user who signed in.
INSERT INTO sessions (digest, token, name, subject, groups, created_at, expires_at)
VALUES (:digest, :token, :name, :subject, :groups, :created_at, :expires_at);

-- name: session
-- The session with this digest.
SELECT digest, token, name, subject, groups, created_at, expires_at FROM sessions WHERE digest = :digest;

-- name: delete_session
-- Deletes the session of a user who signed out.
DELETE FROM sessions WHERE digest = :digest;

-- name: delete_expired_sessions
-- Deletes the sessions that expired at or before a time.
DELETE FROM sessions WHERE expires_at <= :before;

-- name: delete_sso_sessions
-- Deletes the sessions of all users who signed in without a token.
DELETE FROM sessions WHERE token IS NULL;
