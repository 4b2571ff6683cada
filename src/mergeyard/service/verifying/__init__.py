"""Compares what landed with what was recorded, long after the landing, and tells when they differ."""
