-- name: lock_queues
-- Every transaction locks queues in the order of their ids, so that no two commits deadlock.
SELECT id FROM queues WHERE id = ANY (:queues::text[]) ORDER BY id FOR NO KEY UPDATE;

-- name: create_queue
-- Creates a queue and the lease of its repository. Returns no row when the branch already has a live queue.
WITH created AS (
    INSERT INTO queues (id, host, owner, name, target_branch, created_at)
    VALUES (:id, :host, :owner, :name, :target_branch, :at)
    ON CONFLICT (host, owner, name, target_branch) WHERE deleted_at IS NULL DO NOTHING
    RETURNING host, owner, name
),
lease AS (
    INSERT INTO leases (host, owner, name)
    SELECT host, owner, name FROM created
    ON CONFLICT DO NOTHING
)
SELECT true FROM created;

-- name: delete_queue
-- Marks a queue as deleted; its records stay, except its parts and impacted targets. Returns no row when a decision
-- was saved since this version.
WITH deleted AS (
    UPDATE queues SET deleted_at = :at
    WHERE id = :id AND version = :version AND deleted_at IS NULL
    RETURNING id
),
parts AS (
    DELETE FROM queue_parts USING deleted WHERE queue_parts.queue = deleted.id
),
part_deletions AS (
    DELETE FROM deleted_queue_parts USING deleted WHERE deleted_queue_parts.queue = deleted.id
),
uploads AS (
    DELETE FROM impacted_targets USING deleted WHERE impacted_targets.queue = deleted.id
)
SELECT true FROM deleted;

-- name: queue_of_branch
-- The live queue of a target branch.
SELECT id, host, owner, name, target_branch, version FROM queues
WHERE host = :host AND owner = :owner AND name = :name AND target_branch = :target_branch AND deleted_at IS NULL;

-- name: changed_queues
-- Of these queues, the live ones whose version differs from the given one.
SELECT queues.id, host, owner, name, target_branch, queues.version
FROM unnest(:ids::text[], :versions::bigint[]) AS known (id, version)
JOIN queues ON queues.id = known.id AND queues.version <> known.version
WHERE deleted_at IS NULL
ORDER BY queues.id;

-- name: queues_of_repo
-- The live queues of a repository.
SELECT id, host, owner, name, target_branch, version FROM queues
WHERE host = :host AND owner = :owner AND name = :name AND deleted_at IS NULL
ORDER BY id;

-- name: leased_queues
-- The live queues of all repositories whose lease a replica holds.
SELECT queues.id, host, owner, queues.name, target_branch, version
FROM leases JOIN queues USING (host, owner, name)
WHERE holder = :replica AND deleted_at IS NULL
ORDER BY queues.id;
