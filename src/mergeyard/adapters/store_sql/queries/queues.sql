-- name: all_queue_ids
-- The ids of all queues of a repository, deleted ones included.
SELECT id FROM queues WHERE host = :host AND owner = :owner AND name = :name ORDER BY id;

-- name: queues
-- All live queues; there are about as many as target branches.
SELECT id, host, owner, name, target_branch, version FROM queues
WHERE deleted_at IS NULL
ORDER BY host, owner, name, target_branch;

-- name: version
-- The version of a live queue.
SELECT version FROM queues WHERE id = :queue AND deleted_at IS NULL;

-- name: queue_parts
-- All parts of a queue.
SELECT kind, key, body FROM queue_parts WHERE queue = :queue ORDER BY kind, key;

-- name: probe_write
-- Changes one row, to verify that the database accepts writes.
UPDATE write_probe SET counter = counter + 1;
