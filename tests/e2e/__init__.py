"""The real program, as a process of its own."""
