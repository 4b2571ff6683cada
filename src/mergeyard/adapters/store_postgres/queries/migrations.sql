-- name: wait_for_other_migrations
-- Replicas that start at once bring the database to the present form one after the other. The number is any, but ours.
SELECT pg_advisory_xact_lock(7110210125681320);

-- name: make_list_of_migrations
-- Which forms this database went through; the highest number is its present form.
CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL);

-- name: newest_migration
-- The number of the present form, 0 when there is none yet.
SELECT coalesce(max(number), 0) FROM migrations;

-- name: note_migration
-- A migration was applied.
INSERT INTO migrations (number, name) VALUES (:number, :name);

-- name: server
-- Whether this server can do what is asked of it.
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding');
