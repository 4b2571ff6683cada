"""The what-if page: a queue's own past under other settings."""
