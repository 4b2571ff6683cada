"""Replays of a queue's own past under other settings, for whoever asks what would have been."""
