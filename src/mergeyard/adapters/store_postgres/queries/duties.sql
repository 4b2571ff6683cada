-- name: enlist
-- A worker presents itself. Whatever stood under its name before, it begins without duties.
WITH let_go AS (
    UPDATE duties SET holder = NULL, free_since = now() WHERE holder = :replica
),
long_silent AS (
    DELETE FROM replicas WHERE until < now() - interval '1 day' AND id <> :replica
)
INSERT INTO replicas (id, until) VALUES (:replica, now() + :lasting::bigint * interval '1 millisecond')
ON CONFLICT (id) DO UPDATE SET until = excluded.until;

-- name: report
-- It is still there. Does nothing when it was silent for longer than it had said.
UPDATE replicas SET until = now() + :lasting::bigint * interval '1 millisecond'
WHERE id = :replica AND until > now()
RETURNING
    (SELECT count(*) FROM duties),
    (SELECT count(*) FROM replicas WHERE until > now());

-- name: duties
-- What a replica works for.
SELECT host, owner, name, fence FROM duties WHERE holder = :replica ORDER BY host, owner, name;

-- name: claim
-- Takes over what nobody works for: those at hand first, the others when they have been free for long enough. What was
-- never anybody's is at nobody's hand, so nobody is waited for.
-- Another replica may be taking the same: what it has locked is skipped, and what it has taken since has another fence.
WITH free AS MATERIALIZED (
    SELECT
        duties.host, duties.owner, duties.name, duties.fence,
        coalesce(replicas.until, duties.free_since, '-infinity') AS since,
        (duties.host, duties.owner, duties.name) IN (
            SELECT * FROM unnest(:hosts::text[], :owners::text[], :names::text[])
        ) AS at_hand
    FROM duties LEFT JOIN replicas ON replicas.id = duties.holder
    WHERE (replicas.id IS NULL OR replicas.until <= now())
        AND EXISTS (SELECT 1 FROM replicas AS claimant WHERE claimant.id = :replica AND claimant.until > now())
),
chosen AS (
    SELECT duties.host, duties.owner, duties.name
    FROM free JOIN duties USING (host, owner, name, fence)
    WHERE free.at_hand OR free.since <= now() - :patience::bigint * interval '1 millisecond'
    ORDER BY free.at_hand DESC, free.since
    LIMIT :most
    FOR UPDATE OF duties SKIP LOCKED
)
UPDATE duties SET holder = :replica, fence = duties.fence + 1, free_since = NULL
FROM chosen
WHERE duties.host = chosen.host AND duties.owner = chosen.owner AND duties.name = chosen.name
RETURNING duties.host, duties.owner, duties.name, duties.fence;

-- name: let_go
-- Somebody else may work for these.
UPDATE duties SET holder = NULL, free_since = now()
FROM unnest(:hosts::text[], :owners::text[], :names::text[]) AS given (host, owner, name)
WHERE holder = :replica AND duties.host = given.host AND duties.owner = given.owner AND duties.name = given.name;

-- name: resign
-- Somebody else may work for everything that this replica worked for, and it is a worker no more.
WITH let_go AS (
    UPDATE duties SET holder = NULL, free_since = now() WHERE holder = :replica
)
DELETE FROM replicas WHERE id = :replica;

-- name: prove_duty
-- Whether a replica works for a repository. Nobody can take it over before the end of the transaction, even if that
-- comes after the time until which the replica was to be heard of.
SELECT true FROM duties JOIN replicas ON replicas.id = duties.holder
WHERE host = :host AND owner = :owner AND name = :name
    AND holder = :replica AND fence = :fence AND until > clock_timestamp()
FOR SHARE OF duties;
