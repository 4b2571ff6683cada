"""Several real replicas on one real PostgreSQL: cooperation, takeover, and concurrent writes."""
