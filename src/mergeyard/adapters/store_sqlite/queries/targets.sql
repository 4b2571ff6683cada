-- name: keep_targets
-- What a head impacts, as uploaded last.
INSERT INTO targets (queue, number, head, body, at, token) VALUES (:queue, :number, :head, :body, :at, :token)
ON CONFLICT (queue, number, head) DO UPDATE SET body = excluded.body, at = excluded.at, token = excluded.token;

-- name: drop_older_heads
-- The targets of all heads of a pull request but this one and those uploaded last.
DELETE FROM targets WHERE queue = :queue AND number = :number AND head <> :head AND head NOT IN (
    SELECT head FROM targets WHERE queue = :queue AND number = :number AND head <> :head
    ORDER BY at DESC LIMIT :others
);

-- name: delete_targets
-- Those of one head, unless they were uploaded again.
DELETE FROM targets WHERE queue = :queue AND number = :number AND head = :head AND at < :before;

-- name: targets_size
-- How many bytes of targets are kept that a token uploaded.
SELECT coalesce(sum(length(body)), 0) FROM targets WHERE token = :token;

-- name: expired_targets
-- Targets uploaded before, of pull requests not in the queue; one upload stays, so that `any_targets` stays true.
SELECT queue, number, head FROM targets
WHERE at < :before
    AND NOT EXISTS (
        SELECT 1 FROM stays WHERE stays.queue = targets.queue AND stays.number = targets.number AND stays.live
    )
    AND EXISTS (
        SELECT 1 FROM targets AS other
        WHERE other.queue = targets.queue AND (other.number, other.head) > (targets.number, targets.head)
    )
ORDER BY at LIMIT :take;

-- name: targets
-- What a head impacts.
SELECT body FROM targets WHERE queue = :queue AND number = :number AND head = :head;

-- name: has_targets
-- Whether anybody said what a head impacts.
SELECT EXISTS (SELECT 1 FROM targets WHERE queue = :queue AND number = :number AND head = :head);

-- name: any_targets
-- Whether any targets were uploaded for a live queue of a repository.
SELECT EXISTS (
    SELECT 1 FROM queues CROSS JOIN targets ON targets.queue = queues.id
    WHERE queues.host = :host AND queues.owner = :owner AND queues.name = :name AND queues.deleted_at IS NULL
);
