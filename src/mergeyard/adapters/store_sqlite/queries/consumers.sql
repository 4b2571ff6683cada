-- name: start_consumer
-- Changes no row when the consumer has already started.
INSERT INTO consumers (name) VALUES (:consumer) ON CONFLICT DO NOTHING;

-- name: start_at_end
-- Puts a consumer's cursor at the end of the journal of every queue, deleted ones included.
-- Does nothing when the consumer has already started.
INSERT INTO cursors (consumer, queue, seq)
SELECT :consumer, id, coalesce((SELECT max(seq) FROM journal WHERE queue = id), 0) FROM queues
WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE name = :consumer)
ON CONFLICT DO NOTHING;

-- name: delete_consumer
-- Deletes a consumer.
DELETE FROM consumers WHERE name = :consumer;

-- name: delete_cursors
-- Deletes all cursors of a consumer.
DELETE FROM cursors WHERE consumer = :consumer;
