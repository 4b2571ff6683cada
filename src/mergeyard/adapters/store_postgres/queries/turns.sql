-- name: save_turn
-- All that one turn changed, or nothing when somebody else took this turn.
-- One statement, because the queue stays locked until the commit, and each further one would be a way to the server
-- and back. Whoever waits for the lock is outrun afterwards: PostgreSQL looks at the version again.
WITH turn AS (
    UPDATE queues SET version = :version
    WHERE id = :queue AND version = :version - 1 AND deleted_at IS NULL
    RETURNING id, version
),
kept AS (
    INSERT INTO facts (queue, shelf, key, body, version)
    SELECT turn.id, fact.shelf, fact.key, fact.body, turn.version
    FROM turn, unnest(:fact_shelf::text[], :fact_key::text[], :fact_body::bytea[]) AS fact (shelf, key, body)
    ON CONFLICT (queue, shelf, key) DO UPDATE SET body = excluded.body, version = excluded.version
),
gone AS (
    DELETE FROM facts
    USING turn, unnest(:gone_shelf::text[], :gone_key::text[]) AS fact (shelf, key)
    WHERE facts.queue = turn.id AND facts.shelf = fact.shelf AND facts.key = fact.key
    RETURNING facts.queue, turn.version, facts.shelf, facts.key
),
noted AS (
    INSERT INTO dropped (queue, version, shelf, key)
    SELECT queue, version, shelf, key FROM gone
),
forgotten AS (
    DELETE FROM dropped USING turn WHERE dropped.queue = turn.id AND dropped.version <= :forget_until
),
stayed AS (
    INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, live, body, version)
    SELECT
        turn.id, stay.ticket, stay.number, stay.branch, stay.state, stay.submitted_at, stay.live, stay.body,
        turn.version
    FROM turn, unnest(
        :stay_ticket::bigint[], :stay_number::bigint[], :stay_branch::text[], :stay_state::text[],
        :stay_submitted_at::bigint[], :stay_live::boolean[], :stay_body::bytea[]
    ) AS stay (ticket, number, branch, state, submitted_at, live, body)
    ON CONFLICT (queue, ticket) DO UPDATE SET
        branch = excluded.branch,
        state = excluded.state,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
),
ran AS (
    INSERT INTO runs (queue, id, status, started_at, decided_at, live, body, version)
    SELECT turn.id, run.id, run.status, run.started_at, run.decided_at, run.live, run.body, turn.version
    FROM turn, unnest(
        :run_id::text[], :run_status::text[], :run_started_at::bigint[], :run_decided_at::bigint[],
        :run_live::boolean[], :run_body::bytea[]
    ) AS run (id, status, started_at, decided_at, live, body)
    ON CONFLICT (queue, id) DO UPDATE SET
        status = excluded.status,
        started_at = excluded.started_at,
        decided_at = excluded.decided_at,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
)
SELECT true FROM turn;
