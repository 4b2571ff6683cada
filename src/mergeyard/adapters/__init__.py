"""The hands: each does one thing outside, none knows another, none decides."""
