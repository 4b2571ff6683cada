-- name: register_worker
-- Registers a replica as a worker. It starts without leases: those that it held under the same id are released.
-- Replicas that expired more than a day ago are deleted.
WITH released AS (
    UPDATE leases SET holder = NULL, free_since = now() WHERE holder = :replica
),
long_expired AS (
    DELETE FROM replicas WHERE expires_at < now() - interval '1 day' AND id <> :replica
)
INSERT INTO replicas (id, expires_at) VALUES (:replica, now() + :ttl_ms::bigint * interval '1 millisecond')
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at;

-- name: renew_leases
-- Extends the leases of a replica and counts repositories and workers. Returns no row when they have expired.
UPDATE replicas SET expires_at = now() + :ttl_ms::bigint * interval '1 millisecond'
WHERE id = :replica AND expires_at > now()
RETURNING
    (SELECT count(*) FROM leases),
    (SELECT count(*) FROM replicas WHERE expires_at > now());

-- name: leases
-- The leases of a replica.
SELECT host, owner, name, fence FROM leases WHERE holder = :replica ORDER BY host, owner, name;

-- name: acquire_leases
-- Acquires leases without a live holder: those of mirrored repositories first, others once they have been free for the
-- grace period, so that a replica that has their mirror can be faster.
-- A lease that was never held counts as free since the beginning of time, so it needs no grace period.
-- Another replica can acquire at the same time: rows that it has locked are skipped, and a lease that it has acquired
-- since the subquery `free` was read has another fence.
WITH free AS MATERIALIZED (
    SELECT
        leases.host, leases.owner, leases.name, leases.fence,
        coalesce(replicas.expires_at, leases.free_since, '-infinity') AS since,
        (leases.host, leases.owner, leases.name) IN (
            SELECT * FROM unnest(:hosts::text[], :owners::text[], :names::text[])
        ) AS mirrored
    FROM leases LEFT JOIN replicas ON replicas.id = leases.holder
    WHERE (replicas.id IS NULL OR replicas.expires_at <= now())
        AND EXISTS (SELECT 1 FROM replicas AS candidate WHERE candidate.id = :replica AND candidate.expires_at > now())
),
chosen AS (
    SELECT leases.host, leases.owner, leases.name
    FROM free JOIN leases USING (host, owner, name, fence)
    WHERE free.mirrored OR free.since <= now() - :grace_ms::bigint * interval '1 millisecond'
    ORDER BY free.mirrored DESC, free.since
    LIMIT :limit
    FOR UPDATE OF leases SKIP LOCKED
)
UPDATE leases SET holder = :replica, fence = leases.fence + 1, free_since = NULL
FROM chosen
WHERE leases.host = chosen.host AND leases.owner = chosen.owner AND leases.name = chosen.name
RETURNING leases.host, leases.owner, leases.name, leases.fence;

-- name: release_leases
-- Releases leases of a replica, so that another replica can acquire them.
UPDATE leases SET holder = NULL, free_since = now()
FROM unnest(:hosts::text[], :owners::text[], :names::text[]) AS given (host, owner, name)
WHERE holder = :replica AND leases.host = given.host AND leases.owner = given.owner AND leases.name = given.name;

-- name: unregister_worker
-- Releases all leases of a replica and removes it from the workers.
WITH released AS (
    UPDATE leases SET holder = NULL, free_since = now() WHERE holder = :replica
)
DELETE FROM replicas WHERE id = :replica;

-- name: assert_lease
-- Whether a replica holds the lease of a repository under this fence. The row lock keeps other replicas from
-- acquiring it before the end of the transaction, even if the lease expires meanwhile.
SELECT true FROM leases JOIN replicas ON replicas.id = leases.holder
WHERE host = :host AND owner = :owner AND name = :name
    AND holder = :replica AND fence = :fence AND expires_at > clock_timestamp()
FOR SHARE OF leases;
