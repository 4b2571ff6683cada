"""The names of priorities, and their range: the smaller, the sooner."""

PRIORITIES = {"urgent": 0, "high": 10, "medium": 100, "low": 200}
LOWEST = 255
