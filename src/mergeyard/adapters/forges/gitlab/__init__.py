"""GitLab: merge requests, pipelines, notes and merges over its API, version 4."""
