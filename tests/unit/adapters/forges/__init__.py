"""forges."""
