-- name: add_webhook
-- A new one; does nothing when there is one already.
INSERT INTO webhooks (id, version, body) VALUES (:id, :version, :body) ON CONFLICT DO NOTHING;

-- name: change_webhook
-- Changes a row only when nobody else changed it meanwhile.
UPDATE webhooks SET version = :version, body = :body WHERE id = :id AND version = :version - 1;

-- name: drop_webhook
-- It is there no more, nor what was sent to it.
DELETE FROM webhooks WHERE id = :id;

-- name: webhooks
-- All of them; people made them, so there are few.
SELECT id, version, body FROM webhooks ORDER BY id;

-- name: keep_delivery
-- Does nothing when the webhook is there no more.
INSERT INTO deliveries (webhook, event, body) SELECT id, :event, :body FROM webhooks WHERE id = :webhook;

-- name: forget_deliveries
-- All but the last ones.
DELETE FROM deliveries WHERE webhook = :webhook AND place <= (
    SELECT place FROM deliveries WHERE webhook = :webhook ORDER BY place DESC LIMIT 1 OFFSET :kept
);

-- name: deliveries
-- The last attempts to send something to a webhook, newest first.
SELECT body FROM deliveries WHERE webhook = :webhook ORDER BY place DESC LIMIT :take;

-- name: delivery
-- The last attempt to send one event.
SELECT body FROM deliveries WHERE webhook = :webhook AND event = :event ORDER BY place DESC LIMIT 1;
