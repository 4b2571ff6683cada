"""Kills the real server before, during and after every effect that it has: commits, pushes, responses, checks."""
