"""merge_audit."""
