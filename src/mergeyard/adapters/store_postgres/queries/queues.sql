-- name: hold_queues
-- In the order that everybody takes, so that no two commits wait for each other.
SELECT id FROM queues WHERE id = ANY (:queues::text[]) ORDER BY id FOR NO KEY UPDATE;

-- name: create_queue
-- Does nothing when the branch has a queue already. Somebody will have to work for its repository.
WITH created AS (
    INSERT INTO queues (id, host, owner, name, branch, created_at)
    VALUES (:id, :host, :owner, :name, :branch, :at)
    ON CONFLICT (host, owner, name, branch) WHERE deleted_at IS NULL DO NOTHING
    RETURNING host, owner, name
),
duty AS (
    INSERT INTO duties (host, owner, name)
    SELECT host, owner, name FROM created
    ON CONFLICT DO NOTHING
)
SELECT true FROM created;

-- name: delete_queue
-- It is found no more, but what it did remains. Does nothing when somebody took a turn meanwhile.
WITH deleted AS (
    UPDATE queues SET deleted_at = :at
    WHERE id = :id AND version = :version AND deleted_at IS NULL
    RETURNING id
),
no_facts AS (
    DELETE FROM facts USING deleted WHERE facts.queue = deleted.id
),
no_dropped_facts AS (
    DELETE FROM dropped USING deleted WHERE dropped.queue = deleted.id
),
no_targets AS (
    DELETE FROM targets USING deleted WHERE targets.queue = deleted.id
)
SELECT true FROM deleted;

-- name: queues_ever
-- All queues that a repository ever had.
SELECT id FROM queues WHERE host = :host AND owner = :owner AND name = :name ORDER BY id;

-- name: queues
-- All live queues; there are about as many as branches that people merge to.
SELECT id, host, owner, name, branch, version FROM queues
WHERE deleted_at IS NULL
ORDER BY host, owner, name, branch;

-- name: queue_of_branch
-- The live queue of a branch.
SELECT id, host, owner, name, branch, version FROM queues
WHERE host = :host AND owner = :owner AND name = :name AND branch = :branch AND deleted_at IS NULL;

-- name: newer_queues
-- Of these queues, the live ones that have another version now.
SELECT queues.id, host, owner, name, branch, queues.version
FROM unnest(:ids::text[], :versions::bigint[]) AS known (id, version)
JOIN queues ON queues.id = known.id AND queues.version <> known.version
WHERE deleted_at IS NULL
ORDER BY queues.id;

-- name: queues_of_repo
-- The live queues of a repository.
SELECT id, host, owner, name, branch, version FROM queues
WHERE host = :host AND owner = :owner AND name = :name AND deleted_at IS NULL
ORDER BY id;

-- name: queues_on_duty
-- The live queues of all repositories that a replica works for.
SELECT queues.id, host, owner, queues.name, branch, version
FROM duties JOIN queues USING (host, owner, name)
WHERE holder = :replica AND deleted_at IS NULL
ORDER BY queues.id;

-- name: version
-- The version of a live queue.
SELECT version FROM queues WHERE id = :queue AND deleted_at IS NULL;

-- name: facts
-- All facts of a queue.
SELECT shelf, key, body FROM facts WHERE queue = :queue ORDER BY shelf, key;

-- name: beat
-- Writes something that means nothing, to see whether writing works.
UPDATE pulse SET beat = beat + 1;
