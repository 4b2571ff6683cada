-- name: keep_answer
-- In place of an older one that nobody forgot yet; does nothing when there is one that still counts.
INSERT INTO answers (token, key, digest, body, at) VALUES (:token, :key, :digest, :body, :at)
ON CONFLICT DO UPDATE SET digest = excluded.digest, body = excluded.body, at = excluded.at
WHERE answers.at < :unless_since;

-- name: forget_answers
-- Answers that were given before.
DELETE FROM answers WHERE at < :before;

-- name: answer
-- What a request with this key was answered.
SELECT token, key, digest, body, at FROM answers WHERE token = :token AND key = :key;
