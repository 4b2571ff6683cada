-- name: create_queue
-- Does nothing when the branch has a queue already.
INSERT INTO queues (id, host, owner, name, branch, created_at)
VALUES (:id, :host, :owner, :name, :branch, :at)
ON CONFLICT (host, owner, name, branch) WHERE deleted_at IS NULL DO NOTHING;

-- name: delete_queue
-- It is found no more, but what it did remains; changes a row only when nobody took a turn meanwhile.
UPDATE queues SET deleted_at = :at WHERE id = :id AND version = :version AND deleted_at IS NULL;

-- name: drop_facts
-- All facts of a queue.
DELETE FROM facts WHERE queue = :id;

-- name: drop_targets
-- All uploaded targets of a queue.
DELETE FROM targets WHERE queue = :id;

-- name: take_turn
-- Changes a row only when nobody else took this turn.
UPDATE queues SET version = :version
WHERE id = :queue AND version = :version - 1 AND deleted_at IS NULL;

-- name: keep_fact
-- New, or in place of what was there.
INSERT INTO facts (queue, shelf, key, body) VALUES (:queue, :shelf, :key, :body)
ON CONFLICT DO UPDATE SET body = excluded.body;

-- name: drop_fact
-- It is there no more.
DELETE FROM facts WHERE queue = :queue AND shelf = :shelf AND key = :key;

-- name: queues_ever
-- All queues that a repository ever had.
SELECT id FROM queues WHERE host = :host AND owner = :owner AND name = :name ORDER BY id;

-- name: queues
-- All live queues; there are about as many as branches that people merge to.
SELECT id, host, owner, name, branch, version FROM queues
WHERE deleted_at IS NULL
ORDER BY host, owner, name, branch;

-- name: version
-- The version of a live queue.
SELECT version FROM queues WHERE id = :queue AND deleted_at IS NULL;

-- name: facts
-- All facts of a queue.
SELECT shelf, key, body FROM facts WHERE queue = :queue ORDER BY shelf, key;
