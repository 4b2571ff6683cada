-- name: create_webhook
-- Returns no row when the webhook exists.
INSERT INTO webhooks (id, version, body) VALUES (:id, :version, :body) ON CONFLICT DO NOTHING RETURNING true;

-- name: update_webhook
-- Returns no row when another update of this version was saved: compare-and-swap on the version.
UPDATE webhooks SET version = :version, body = :body WHERE id = :id AND version = :version - 1 RETURNING true;

-- name: delete_webhook
-- Deletes a webhook with its deliveries.
DELETE FROM webhooks WHERE id = :id;

-- name: webhooks
-- All webhooks; administrators create them, so there are few.
SELECT id, version, body FROM webhooks ORDER BY id;

-- name: save_delivery
-- Stores a delivery attempt and deletes all but the latest. Inserts nothing when the webhook was deleted.
WITH old AS (
    DELETE FROM deliveries WHERE webhook = :webhook AND row_id <= (
        SELECT row_id FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT 1 OFFSET :kept::bigint - 1
    )
)
INSERT INTO deliveries (webhook, event, body)
SELECT id, :event::text, :body::bytea FROM webhooks WHERE id = :webhook FOR KEY SHARE;

-- name: deliveries
-- The latest delivery attempts of a webhook, newest first.
SELECT body FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT :take;

-- name: delivery
-- The last attempt to deliver one event to a webhook.
SELECT body FROM deliveries WHERE webhook = :webhook AND event = :event ORDER BY row_id DESC LIMIT 1;
