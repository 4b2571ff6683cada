"""Seeded random worlds, and the laws that the engine must obey in each of them."""
