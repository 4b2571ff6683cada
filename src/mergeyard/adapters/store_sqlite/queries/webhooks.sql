-- name: create_webhook
-- Changes no row when the webhook exists.
INSERT INTO webhooks (id, version, body) VALUES (:id, :version, :body) ON CONFLICT DO NOTHING;

-- name: update_webhook
-- Changes no row when another update of this version was saved: compare-and-swap on the version.
UPDATE webhooks SET version = :version, body = :body WHERE id = :id AND version = :version - 1;

-- name: delete_webhook
-- Deletes a webhook with its deliveries.
DELETE FROM webhooks WHERE id = :id;

-- name: webhooks
-- All webhooks; administrators create them, so there are few.
SELECT id, version, body FROM webhooks ORDER BY id;

-- name: save_delivery
-- Stores a delivery attempt; inserts nothing when the webhook was deleted.
INSERT INTO deliveries (webhook, event, body) SELECT id, :event, :body FROM webhooks WHERE id = :webhook;

-- name: delete_old_deliveries
-- Deletes all deliveries of a webhook except the latest.
DELETE FROM deliveries WHERE webhook = :webhook AND row_id <= (
    SELECT row_id FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT 1 OFFSET :kept
);

-- name: deliveries
-- The latest delivery attempts of a webhook, newest first.
SELECT body FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT :take;

-- name: delivery
-- The last attempt to deliver one event to a webhook.
SELECT body FROM deliveries WHERE webhook = :webhook AND event = :event ORDER BY row_id DESC LIMIT 1;
