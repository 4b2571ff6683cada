"""Ports: protocols of everything the service needs from outside, with the values that cross them.

- `store`, `writes`: reads and transactions. A write is a struct; `Store.commit` applies several atomically.
- `git`: mirrors, commits, merges and pushes
- `forge`: `Host` (every Git host) and `Forge` (hosts with comments, checks and roles of their own)
- `archive`: copying a whole database, for backups and for moving between stores
- `external`: clock, check runner, encryption, webhook sender, identity provider, forecasts, large bodies

Exceptions are part of a port; an adapter raises no others on purpose.
"""
