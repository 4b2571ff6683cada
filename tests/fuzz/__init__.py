"""Looks for bugs with input that nobody would think of: requests at random, parsers at random, clients at random."""
