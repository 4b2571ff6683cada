"""Fault injection: what the real server reports when disk, database, git or clock fail, and that it recovers."""
