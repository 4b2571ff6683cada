"""Adapters perform all I/O. Each implements a port and decides nothing.

- `store_sqlite`, `store_postgres`: the port `Store`. SQL is in `queries/` and `migrations/`, in named statements.
- `store_sql`: the queries, reads and statements that these two stores share
- `git_cli`: the ports `Git` and `Mirror`, by the git command line in bare repositories
- `host_plain`: the port `Host` for bare repositories in a folder
- `forges`: the ports `Host` and `Forge` for GitHub, GitLab, Gitea and Forgejo
- `runner_local`: the port `CheckRunner`, for repositories without CI
- `oidc`: the port `IdentityProvider`
- `webhooks`: sends outgoing webhooks, and refuses private addresses
- `encryption`, `clock`, `subprocesses`: secrets at rest, time, and helper processes of the server

Apart from shared code (`store_sql`, the git runner), an adapter imports neither another adapter nor the engine;
`wiring` chooses the adapters. Errors of the outside world leave an adapter as an exception of its port
(`HostUnavailable`, `StoreUnavailable`, `GitError`), with a message that says what to do.
"""
