-- name: make_list_of_migrations
-- Which forms this database went through; the highest number is its present form.
CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;

-- name: newest_migration
-- The number of the present form, 0 when there is none yet.
SELECT coalesce(max(number), 0) FROM migrations;

-- name: note_migration
-- A migration was applied.
INSERT INTO migrations (number, name) VALUES (:number, :name);
