"""The real server, killed exactly before, during and after everything that it does to the world."""
