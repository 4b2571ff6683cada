"""Gitea and Forgejo as a host, over their API v1."""
