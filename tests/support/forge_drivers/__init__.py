"""Drivers for the fake forges: actions of users and CI, with the same methods for each forge."""
