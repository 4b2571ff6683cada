"""GitLab as a Git host, over its API version 4. Its merge requests are the queue's pull requests.

A project is addressed by its full path, groups included. Pipelines of the test branch count as checks; external
statuses are read together with them.
"""
