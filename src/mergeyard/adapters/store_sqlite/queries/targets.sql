-- name: keep_targets
-- What a head impacts, as uploaded last.
INSERT INTO targets (queue, number, head, body, at) VALUES (:queue, :number, :head, :body, :at)
ON CONFLICT (queue, number, head) DO UPDATE SET body = excluded.body, at = excluded.at;

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
