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

-- name: deliveries
-- The latest delivery attempts of a webhook, newest first.
SELECT body FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT :take;

-- name: delivery
-- The last attempt to deliver one event to a webhook.
SELECT body FROM deliveries WHERE webhook = :webhook AND event = :event ORDER BY row_id DESC LIMIT 1;
