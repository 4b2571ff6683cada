-- name: save_delivery
-- Stores a delivery attempt and deletes all but the latest. Inserts nothing when the webhook was deleted.
WITH old AS (
    DELETE FROM deliveries WHERE webhook = :webhook AND row_id <= (
        SELECT row_id FROM deliveries WHERE webhook = :webhook ORDER BY row_id DESC LIMIT 1 OFFSET :kept::bigint - 1
    )
)
INSERT INTO deliveries (webhook, event, body)
SELECT id, :event::text, :body::bytea FROM webhooks WHERE id = :webhook FOR KEY SHARE;
