"""The real program as a separate process."""
