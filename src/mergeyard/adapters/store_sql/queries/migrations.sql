-- name: schema_version
-- The number of the last applied migration, 0 if there is none.
SELECT coalesce(max(number), 0) FROM migrations;

-- name: record_migration
-- Records that a migration was applied.
INSERT INTO migrations (number, name) VALUES (:number, :name);
