"""The health page: how queues did, in charts and numbers."""
