"""Batched traffic for a long time on the real server: nothing grows that should not, and every promise is kept."""
