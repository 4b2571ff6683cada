-- name: begin_writing
-- Takes the right to write at once, so that waiting for another process happens here and nowhere later.
BEGIN IMMEDIATE;

-- name: begin_reading
-- All reads up to the end see the same moment.
BEGIN;

-- name: commit
-- Makes a whole group of jobs durable, or ends a reading.
COMMIT;

-- name: rollback
-- Nothing of the group was written.
ROLLBACK;

-- name: begin_job
-- What one caller wants written, inside the group.
SAVEPOINT job;

-- name: undo_job
-- Takes back what one caller wrote, and nothing of the others.
ROLLBACK TO job;

-- name: end_job
-- The job is part of the group now, or undone.
RELEASE job;

-- name: quick_check
-- The first thing that is wrong with how the file is put together, or `ok`.
PRAGMA quick_check(1);

-- name: beat
-- Writes something that means nothing, to see whether writing works.
UPDATE pulse SET beat = beat + 1;
