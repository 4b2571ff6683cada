"""Tests on a real forge: a Gitea that is started here with its own data."""
