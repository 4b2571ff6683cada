"""Batched traffic on the real server for a long time: checks that nothing leaks and that every promise is kept."""
