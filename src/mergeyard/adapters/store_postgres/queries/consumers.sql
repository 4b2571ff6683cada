-- name: start_consumer
-- Registers a consumer, with its cursor at the end of the journal of every queue, deleted ones included. Changes
-- nothing when the consumer has already started.
WITH started AS (
    INSERT INTO consumers (name) VALUES (:consumer) ON CONFLICT DO NOTHING RETURNING name
)
INSERT INTO cursors (consumer, queue, seq)
SELECT started.name, queues.id, coalesce((SELECT max(seq) FROM journal WHERE journal.queue = queues.id), 0)
FROM started, queues
ON CONFLICT DO NOTHING;

-- name: delete_consumer
-- Deletes a consumer with its cursors.
WITH deleted AS (
    DELETE FROM consumers WHERE name = :consumer
)
DELETE FROM cursors WHERE consumer = :consumer;
