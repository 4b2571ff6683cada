-- name: save_delivery
-- Stores a delivery attempt; inserts nothing when the webhook was deleted.
INSERT INTO deliveries (webhook, event, body) SELECT id, :event, :body FROM webhooks WHERE id = :webhook;

-- name: delete_old_deliveries
-- Deletes all deliveries of a webhook except the latest.
DELETE FROM deliveries WHERE webhook = :webhook AND row_id <= (
    SELECT row_id FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT 1 OFFSET :kept
);
