-- name: save_session
-- Somebody signed in.
INSERT INTO sessions (digest, token, name, subject, groups, created_at, expires_at)
VALUES (:digest, :token, :name, :subject, :groups, :created_at, :expires_at);

-- name: session
-- The session with this digest.
SELECT digest, token, name, subject, groups, created_at, expires_at FROM sessions WHERE digest = :digest;

-- name: drop_session
-- Somebody signed out.
DELETE FROM sessions WHERE digest = :digest;

-- name: forget_sessions
-- Those that have ended.
DELETE FROM sessions WHERE expires_at <= :before;

-- name: drop_vouched_for
-- Everybody who signed in without a token.
DELETE FROM sessions WHERE token IS NULL;
