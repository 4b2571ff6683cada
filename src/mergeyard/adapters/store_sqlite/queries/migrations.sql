-- name: create_migrations_table
-- The migrations applied to this database; the highest number is the schema version.
CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
