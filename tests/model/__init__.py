"""Seeded random worlds, and the laws that the engine must keep in each of them."""
