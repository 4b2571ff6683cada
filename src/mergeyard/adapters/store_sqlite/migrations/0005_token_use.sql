-- When and from which address a token was last used.
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;
ALTER TABLE tokens ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';

-- Issuer and subject of a person who signed in by an identity provider.
ALTER TABLE sessions ADD COLUMN subject TEXT NOT NULL DEFAULT '';
