"""The race of policies: how queues that decide differently would have done on the same day."""
