-- name: call_out
-- In a transaction of its own, and never with a commit: notifying takes a lock on the whole server until the commit
-- is over, so that all commits would go to the disk one after the other. A lost word harms nobody, so none waits for
-- the disk.
SELECT pg_notify('mergeyard', word), set_config('synchronous_commit', 'off', true)
FROM unnest(:words::text[]) AS word;
