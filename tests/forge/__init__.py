"""Against a real forge: Gitea, started here on its own data."""
