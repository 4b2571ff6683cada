-- name: save_impacted_targets
-- Inserts or replaces the impacted targets of a head commit. Of a pull request, only this head and the heads uploaded
-- last are kept.
WITH older AS (
    DELETE FROM impacted_targets WHERE queue = :queue AND number = :number AND head <> :head AND head NOT IN (
        SELECT head FROM impacted_targets WHERE queue = :queue AND number = :number AND head <> :head
        ORDER BY at DESC LIMIT :others
    )
)
INSERT INTO impacted_targets (queue, number, head, body, at, token)
VALUES (:queue, :number, :head, :body, :at, :token)
ON CONFLICT (queue, number, head) DO UPDATE SET body = excluded.body, at = excluded.at, token = excluded.token;

-- name: delete_impacted_targets
-- Deletes the impacted targets of these heads, unless they were uploaded again.
DELETE FROM impacted_targets
USING unnest(:queue::text[], :number::bigint[], :head::text[]) AS expired (queue, number, head)
WHERE impacted_targets.queue = expired.queue AND impacted_targets.number = expired.number
    AND impacted_targets.head = expired.head AND at < :before;

-- name: impacted_targets_size
-- How many bytes of impacted targets are stored that a token uploaded.
SELECT coalesce(sum(length(body)), 0)::bigint FROM impacted_targets WHERE token = :token;

-- name: has_any_impacted_targets
-- Whether impacted targets were uploaded for any live queue of a repository.
SELECT EXISTS (
    SELECT 1 FROM queues JOIN impacted_targets ON impacted_targets.queue = queues.id
    WHERE queues.host = :host AND queues.owner = :owner AND queues.name = :name AND queues.deleted_at IS NULL
);
