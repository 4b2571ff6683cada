-- When and from which address a token was last used.
ALTER TABLE tokens ADD COLUMN last_used_at BIGINT;
ALTER TABLE tokens ADD COLUMN last_used_from TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Issuer and subject of a person who signed in by an identity provider.
ALTER TABLE sessions ADD COLUMN subject TEXT COLLATE "C" NOT NULL DEFAULT '';
