"""Worlds to run the engine in, made of a simulated CI, a simulated repository and simulated people."""
