-- name: create_queue
-- Changes no row when the branch already has a live queue.
INSERT INTO queues (id, host, owner, name, target_branch, created_at)
VALUES (:id, :host, :owner, :name, :target_branch, :at)
ON CONFLICT (host, owner, name, target_branch) WHERE deleted_at IS NULL DO NOTHING;

-- name: delete_queue
-- Marks a queue as deleted; its records stay. Changes no row when a decision was saved since this version.
UPDATE queues SET deleted_at = :at WHERE id = :id AND version = :version AND deleted_at IS NULL;

-- name: delete_parts_of_queue
-- Deletes all parts of a queue.
DELETE FROM queue_parts WHERE queue = :id;

-- name: delete_impacted_targets_of_queue
-- Deletes all uploaded impacted targets of a queue.
DELETE FROM impacted_targets WHERE queue = :id;
