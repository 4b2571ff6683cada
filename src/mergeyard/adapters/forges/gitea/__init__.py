"""Gitea and Forgejo as a Git host, over their API version 1.

Gitea does not notice by itself that a pull request was merged by a push: `merging` calls `manually-merged`. It computes
mergeability in the background, so a result can be older than the head it is shown for.
"""
