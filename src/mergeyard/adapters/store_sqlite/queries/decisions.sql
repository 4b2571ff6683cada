-- name: advance_version
-- Changes no row when another decision of this version was saved: compare-and-swap on the version.
UPDATE queues SET version = :version
WHERE id = :queue AND version = :version - 1 AND deleted_at IS NULL;

-- name: save_queue_part
-- Inserts or replaces one part of a queue.
INSERT INTO queue_parts (queue, kind, key, body) VALUES (:queue, :kind, :key, :body)
ON CONFLICT DO UPDATE SET body = excluded.body;

-- name: delete_queue_part
-- Deletes one part of a queue.
DELETE FROM queue_parts WHERE queue = :queue AND kind = :kind AND key = :key;
