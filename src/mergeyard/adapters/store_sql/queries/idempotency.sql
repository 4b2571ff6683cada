-- name: save_response
-- Replaces an expired response that was not deleted yet; returns no row when there is one that still counts.
INSERT INTO responses (token, key, digest, body, at) VALUES (:token, :key, :digest, :body, :at)
ON CONFLICT (token, key) DO UPDATE SET digest = excluded.digest, body = excluded.body, at = excluded.at
WHERE responses.at < :unless_saved_since
RETURNING true;

-- name: delete_expired_responses
-- Deletes the responses given before a time.
DELETE FROM responses WHERE at < :before;

-- name: response
-- The response to the request with this idempotency key.
SELECT token, key, digest, body, at FROM responses WHERE token = :token AND key = :key;
