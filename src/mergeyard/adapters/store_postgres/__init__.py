"""Store in a PostgreSQL database that any number of replicas share.

Every commit of a decision compares and swaps the version of its queue. Leases with fencing numbers say which replica
works for a repository. NOTIFY sends hints to the other replicas; a hint can be lost, so they poll as well.
"""
