"""The whole service in a simulated world: one seed, one world, and a check of every promise."""
