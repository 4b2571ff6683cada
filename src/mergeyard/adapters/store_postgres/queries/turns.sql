-- name: save_turn
-- All that one turn changed, with what the journal tells of it, or nothing when somebody else took this turn.
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
    INSERT INTO stays (queue, ticket, number, branch, state, submitted_at, ended_at, live, body, version)
    SELECT
        turn.id, stay.ticket, stay.number, stay.branch, stay.state, stay.submitted_at, stay.ended_at, stay.live,
        stay.body, turn.version
    FROM turn, unnest(
        :stay_ticket::bigint[], :stay_number::bigint[], :stay_branch::text[], :stay_state::text[],
        :stay_submitted_at::bigint[], :stay_ended_at::bigint[], :stay_live::boolean[], :stay_body::bytea[]
    ) AS stay (ticket, number, branch, state, submitted_at, ended_at, live, body)
    ON CONFLICT (queue, ticket) DO UPDATE SET
        branch = excluded.branch,
        state = excluded.state,
        ended_at = excluded.ended_at,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
),
ran AS (
    INSERT INTO runs (queue, id, status, tested, tip, started_at, decided_at, ended_at, live, body, version)
    SELECT
        turn.id, run.id, run.status, run.tested, run.tip, run.started_at, run.decided_at, run.ended_at, run.live,
        run.body, turn.version
    FROM turn, unnest(
        :run_id::text[], :run_status::text[], :run_tested::bigint[], :run_tip::text[], :run_started_at::bigint[],
        :run_decided_at::bigint[], :run_ended_at::bigint[], :run_live::boolean[], :run_body::bytea[]
    ) AS run (id, status, tested, tip, started_at, decided_at, ended_at, live, body)
    ON CONFLICT (queue, id) DO UPDATE SET
        status = excluded.status,
        tested = excluded.tested,
        tip = excluded.tip,
        started_at = excluded.started_at,
        decided_at = excluded.decided_at,
        ended_at = excluded.ended_at,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
),
told AS (
    INSERT INTO journal (
        queue, at, kind, actor, token, ticket, number, source, to_state, reason,
        bisecting, in_state, in_queue, first_run, body
    )
    SELECT turn.id, entry.*
    FROM turn, unnest(
        :entry_at::bigint[], :entry_kind::text[], :entry_actor::text[], :entry_token::text[], :entry_ticket::bigint[],
        :entry_number::bigint[], :entry_source::text[], :entry_to::text[], :entry_reason::text[],
        :entry_bisecting::boolean[], :entry_in_state::bigint[], :entry_in_queue::bigint[],
        :entry_first_run::boolean[], :entry_body::bytea[]
    ) AS entry
)
SELECT true FROM turn;

-- name: changes
-- All that was written to a queue after a version, as of one moment, because it is one statement: its version, facts
-- that were kept or, without a body, dropped and did not come back, and stays and runs, live or not. The place of the
-- queue is the version up to which records of it were deleted.
SELECT
    'queue' AS kind, version, NULL AS shelf, NULL AS key, deleted_up_to AS place, true AS live, NULL::bytea AS body
FROM queues WHERE id = :queue AND deleted_at IS NULL
UNION ALL
SELECT 'fact', version, shelf, key, 0, true, body FROM facts WHERE queue = :queue AND version > :after
UNION ALL
SELECT DISTINCT 'fact', 0::bigint, shelf, key, 0::bigint, false, NULL::bytea FROM dropped
WHERE queue = :queue AND version > :after AND NOT EXISTS (
    SELECT 1 FROM facts
    WHERE facts.queue = dropped.queue AND facts.shelf = dropped.shelf AND facts.key = dropped.key
)
UNION ALL
SELECT 'stay', version, NULL, NULL, ticket, live, body FROM stays WHERE queue = :queue AND version > :after
UNION ALL
SELECT 'run', version, NULL, NULL, place, live, body FROM runs WHERE queue = :queue AND version > :after
ORDER BY kind, shelf, key, place;
