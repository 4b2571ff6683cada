-- name: notify
-- Sends hints to all replicas, in a transaction of its own: NOTIFY takes a lock on the whole server until the commit is
-- over, so within the transactions of decisions all commits would be flushed to disk one after the other.
-- A lost hint only delays a replica, so the commit does not wait for the disk.
SELECT pg_notify('mergeyard', hint), set_config('synchronous_commit', 'off', true)
FROM unnest(:hints::text[]) AS hint;
