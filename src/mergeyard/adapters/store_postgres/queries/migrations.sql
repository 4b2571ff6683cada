-- name: lock_migrations
-- Replicas that start at the same time migrate one after the other. The number is arbitrary.
SELECT pg_advisory_xact_lock(7110210125681320);

-- name: create_migrations_table
-- The migrations applied to this database; the highest number is the schema version.
CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL);

-- name: server
-- The major version and the encoding of the server.
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding');
