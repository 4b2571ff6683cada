-- name: save_queue_part
-- Inserts or replaces one part of a queue.
INSERT INTO queue_parts (queue, kind, key, body) VALUES (:queue, :kind, :key, :body)
ON CONFLICT DO UPDATE SET body = excluded.body;
