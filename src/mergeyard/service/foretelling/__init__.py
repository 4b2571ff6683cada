"""Foretells when pull requests merge, for answers and pages, and counts how often that was right."""
