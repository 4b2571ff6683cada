-- name: begin_writing
-- Takes the write lock at once, so that only this statement waits for another process.
BEGIN IMMEDIATE;

-- name: begin_reading
-- All reads up to the end of the transaction see one snapshot.
BEGIN;

-- name: commit
-- Makes a group of jobs durable, or ends a read transaction.
COMMIT;

-- name: rollback
-- Discards the whole group.
ROLLBACK;

-- name: begin_job
-- Starts the savepoint of one caller's job inside the group.
SAVEPOINT job;

-- name: undo_job
-- Discards one caller's job and nothing of the others.
ROLLBACK TO job;

-- name: end_job
-- Ends the savepoint of a job, performed or discarded.
RELEASE job;

-- name: quick_check
-- The first structural error of the file, or `ok`.
PRAGMA quick_check(1);
