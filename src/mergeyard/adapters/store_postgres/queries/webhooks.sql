-- name: add_webhook
-- A new one; does nothing when there is one already.
INSERT INTO webhooks (id, version, body) VALUES (:id, :version, :body) ON CONFLICT DO NOTHING RETURNING true;

-- name: change_webhook
-- Does nothing when somebody else changed it meanwhile.
UPDATE webhooks SET version = :version, body = :body WHERE id = :id AND version = :version - 1 RETURNING true;

-- name: drop_webhook
-- It is there no more, nor what was sent to it.
DELETE FROM webhooks WHERE id = :id;

-- name: webhooks
-- All of them; people made them, so there are few.
SELECT id, version, body FROM webhooks ORDER BY id;

-- name: keep_delivery
-- Only the last ones stay. Does nothing when the webhook is there no more.
WITH forgotten AS (
    DELETE FROM deliveries WHERE webhook = :webhook AND place <= (
        SELECT place FROM deliveries WHERE webhook = :webhook ORDER BY place DESC LIMIT 1 OFFSET :kept::bigint - 1
    )
)
INSERT INTO deliveries (webhook, event, body)
SELECT id, :event::text, :body::bytea FROM webhooks WHERE id = :webhook FOR KEY SHARE;

-- name: deliveries
-- The last attempts to send something to a webhook, newest first.
SELECT body FROM deliveries WHERE webhook = :webhook ORDER BY place DESC LIMIT :take;

-- name: delivery
-- The last attempt to send one event.
SELECT body FROM deliveries WHERE webhook = :webhook AND event = :event ORDER BY place DESC LIMIT 1;
