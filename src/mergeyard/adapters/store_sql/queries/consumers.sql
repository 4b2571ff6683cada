-- name: move_cursor
-- Moves a cursor forward, never back, and clears the stall.
INSERT INTO cursors (consumer, queue, seq) VALUES (:consumer, :queue, :seq)
ON CONFLICT (consumer, queue) DO UPDATE SET seq = excluded.seq, stalled_since = NULL WHERE excluded.seq > cursors.seq;

-- name: mark_stalled
-- Records since when a consumer is stalled; the first time counts, until the cursor moves.
INSERT INTO cursors (consumer, queue, seq, stalled_since) VALUES (:consumer, :queue, 0, :at)
ON CONFLICT (consumer, queue) DO UPDATE SET stalled_since = excluded.stalled_since
WHERE cursors.stalled_since IS NULL;

-- name: clear_stalled
-- Clears the stall of a consumer in all queues.
UPDATE cursors SET stalled_since = NULL WHERE consumer = :consumer;

-- name: cursor
-- The last entry of a queue that a consumer has processed.
SELECT seq FROM cursors WHERE consumer = :consumer AND queue = :queue;

-- name: stalled_since
-- Since when a consumer fails to process the next entry of a queue.
SELECT stalled_since FROM cursors WHERE consumer = :consumer AND queue = :queue;

-- name: queues_with_unread_entries
-- The queues, deleted ones included, with entries after the cursor of a consumer.
SELECT id, host, owner, name, target_branch, version FROM queues
WHERE (SELECT max(seq) FROM journal WHERE journal.queue = queues.id)
    > coalesce((SELECT seq FROM cursors WHERE cursors.consumer = :consumer AND cursors.queue = queues.id), 0)
ORDER BY id;

-- name: save_thread_state
-- Inserts or replaces the state of a pull request's comment thread.
INSERT INTO thread_states (queue, number, body) VALUES (:queue, :number, :body)
ON CONFLICT (queue, number) DO UPDATE SET body = excluded.body;

-- name: thread_state
-- The state of a pull request's comment thread.
SELECT body FROM thread_states WHERE queue = :queue AND number = :number;
