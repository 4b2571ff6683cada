"""Store in one SQLite file, for a single server.

Uses apsw, because its wheel brings a SQLite that two processes can safely write with. One thread writes (`writer`),
everything that waits at that moment as one transaction; reads have connections of their own.
"""
