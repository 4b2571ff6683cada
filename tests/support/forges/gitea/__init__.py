"""A fake Gitea."""
