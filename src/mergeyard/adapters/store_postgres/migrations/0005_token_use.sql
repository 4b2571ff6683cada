-- When and from which address a token was last used.
ALTER TABLE tokens ADD COLUMN last_used_at BIGINT;
ALTER TABLE tokens ADD COLUMN last_used_from TEXT COLLATE "C" NOT NULL DEFAULT '';
