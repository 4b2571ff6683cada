"""A Gitea that only looks like one."""
