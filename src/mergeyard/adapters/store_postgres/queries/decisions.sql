-- name: save_decision
-- Saves all changes of one decision with its journal entries, or nothing when another decision of this version was
-- saved. One statement, because the queue's row stays locked until the commit, and each further statement would add a
-- round trip. A transaction that waited for the lock changes no row: PostgreSQL evaluates the version again.
WITH decision AS (
    UPDATE queues SET version = :version
    WHERE id = :queue AND version = :version - 1 AND deleted_at IS NULL
    RETURNING id, version
),
saved_parts AS (
    INSERT INTO queue_parts (queue, kind, key, body, version)
    SELECT decision.id, part.kind, part.key, part.body, decision.version
    FROM decision, unnest(:part_kind::text[], :part_key::text[], :part_body::bytea[]) AS part (kind, key, body)
    ON CONFLICT (queue, kind, key) DO UPDATE SET body = excluded.body, version = excluded.version
),
deleted_parts AS (
    DELETE FROM queue_parts
    USING decision, unnest(:deleted_kind::text[], :deleted_key::text[]) AS part (kind, key)
    WHERE queue_parts.queue = decision.id AND queue_parts.kind = part.kind AND queue_parts.key = part.key
    RETURNING queue_parts.queue, decision.version, queue_parts.kind, queue_parts.key
),
recorded_deletions AS (
    INSERT INTO deleted_queue_parts (queue, version, kind, key)
    SELECT queue, version, kind, key FROM deleted_parts
),
expired_deletions AS (
    DELETE FROM deleted_queue_parts USING decision
    WHERE deleted_queue_parts.queue = decision.id AND deleted_queue_parts.version <= :oldest_version
),
saved_submissions AS (
    INSERT INTO submissions (
        queue, submission_id, number, head_branch, state, submitted_at, ended_at, live, body, version
    )
    SELECT decision.id, submission.*, decision.version
    FROM decision, unnest(
        :submission_submission_id::bigint[], :submission_number::bigint[], :submission_branch::text[],
        :submission_state::text[], :submission_submitted_at::bigint[], :submission_ended_at::bigint[],
        :submission_live::boolean[], :submission_body::bytea[]
    ) AS submission
    ON CONFLICT (queue, submission_id) DO UPDATE SET
        head_branch = excluded.head_branch,
        state = excluded.state,
        ended_at = excluded.ended_at,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
),
saved_runs AS (
    INSERT INTO runs (
        queue, id, status, tested_count, tip, started_at, decided_at, ended_at, live, body, version
    )
    SELECT decision.id, run.*, decision.version
    FROM decision, unnest(
        :run_id::text[], :run_status::text[], :run_tested_count::bigint[], :run_tip::text[],
        :run_started_at::bigint[], :run_decided_at::bigint[], :run_ended_at::bigint[], :run_live::boolean[],
        :run_body::bytea[]
    ) AS run
    ON CONFLICT (queue, id) DO UPDATE SET
        status = excluded.status,
        tested_count = excluded.tested_count,
        tip = excluded.tip,
        started_at = excluded.started_at,
        decided_at = excluded.decided_at,
        ended_at = excluded.ended_at,
        live = excluded.live,
        body = excluded.body,
        version = excluded.version
),
appended_entries AS (
    INSERT INTO journal (
        queue, at, kind, actor, token, submission_id, number, from_state, to_state, reason,
        bisecting, ms_in_state, ms_in_queue, first_run, body
    )
    SELECT decision.id, entry.*
    FROM decision, unnest(
        :entry_at::bigint[], :entry_kind::text[], :entry_actor::text[], :entry_token::text[],
        :entry_submission_id::bigint[], :entry_number::bigint[], :entry_source::text[], :entry_to::text[],
        :entry_reason::text[], :entry_bisecting::boolean[], :entry_ms_in_state::bigint[], :entry_ms_in_queue::bigint[],
        :entry_first_run::boolean[], :entry_body::bytea[]
    ) AS entry
)
SELECT true FROM decision;

-- name: changes
-- Everything that was written to a queue after a version, as one snapshot, because it is one statement: the queue's
-- version; parts that were saved or, without a body, deleted and not saved again; submissions and runs, live or not.
-- `row_id` of the queue's row is the version up to which records of the queue were deleted.
SELECT
    'queue' AS row_kind, version, NULL AS kind, NULL AS key, deleted_up_to AS row_id, true AS live, NULL::bytea AS body
FROM queues WHERE id = :queue AND deleted_at IS NULL
UNION ALL
SELECT 'part', version, kind, key, 0, true, body FROM queue_parts WHERE queue = :queue AND version > :after
UNION ALL
SELECT DISTINCT 'part', 0::bigint, kind, key, 0::bigint, false, NULL::bytea FROM deleted_queue_parts
WHERE queue = :queue AND version > :after AND NOT EXISTS (
    SELECT 1 FROM queue_parts
    WHERE queue_parts.queue = deleted_queue_parts.queue AND queue_parts.kind = deleted_queue_parts.kind
        AND queue_parts.key = deleted_queue_parts.key
)
UNION ALL
SELECT 'submission', version, NULL, NULL, submission_id, live, body FROM submissions
WHERE queue = :queue AND version > :after
UNION ALL
SELECT 'run', version, NULL, NULL, row_id, live, body FROM runs WHERE queue = :queue AND version > :after
ORDER BY row_kind, kind, key, row_id;
