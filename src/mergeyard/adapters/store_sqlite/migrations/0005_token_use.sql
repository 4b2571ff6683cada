-- When and from which address a token was last used.
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;
ALTER TABLE tokens ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';
