-- name: begin_telling
-- Puts a teller that has not begun yet at the end of the journal of every queue that there is or was.
WITH begun AS (
    INSERT INTO tellers (name) VALUES (:teller) ON CONFLICT DO NOTHING RETURNING name
)
INSERT INTO cursors (teller, queue, seq)
SELECT begun.name, queues.id, coalesce((SELECT max(seq) FROM journal WHERE journal.queue = queues.id), 0)
FROM begun, queues
ON CONFLICT DO NOTHING;

-- name: forget_teller
-- It tells no more, and its places are gone.
WITH gone AS (
    DELETE FROM tellers WHERE name = :teller
)
DELETE FROM cursors WHERE teller = :teller;

-- name: move_cursor
-- Never back.
INSERT INTO cursors (teller, queue, seq) VALUES (:teller, :queue, :seq)
ON CONFLICT (teller, queue) DO UPDATE SET seq = excluded.seq, stuck_since = NULL WHERE excluded.seq > cursors.seq;

-- name: note_stuck
-- The first time counts, until it moves.
INSERT INTO cursors (teller, queue, seq, stuck_since) VALUES (:teller, :queue, 0, :at)
ON CONFLICT (teller, queue) DO UPDATE SET stuck_since = excluded.stuck_since WHERE cursors.stuck_since IS NULL;

-- name: take_heart
-- As if it had never been stuck.
UPDATE cursors SET stuck_since = NULL WHERE teller = :teller;

-- name: cursor
-- How far a teller told of a queue.
SELECT seq FROM cursors WHERE teller = :teller AND queue = :queue;

-- name: stuck_since
-- Since when a teller has been unable to go on.
SELECT stuck_since FROM cursors WHERE teller = :teller AND queue = :queue;

-- name: behind
-- The queues, deleted ones among them, of which a teller has something to tell.
SELECT id, host, owner, name, branch, version FROM queues
WHERE (SELECT max(seq) FROM journal WHERE journal.queue = queues.id)
    > coalesce((SELECT seq FROM cursors WHERE cursors.teller = :teller AND cursors.queue = queues.id), 0)
ORDER BY id;

-- name: keep_conversation
-- What was said on a pull request, as it is now.
INSERT INTO conversations (queue, number, body) VALUES (:queue, :number, :body)
ON CONFLICT (queue, number) DO UPDATE SET body = excluded.body;

-- name: conversation
-- What was said on a pull request.
SELECT body FROM conversations WHERE queue = :queue AND number = :number;
