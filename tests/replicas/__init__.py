"""Several real replicas on one real PostgreSQL, together and against each other."""
