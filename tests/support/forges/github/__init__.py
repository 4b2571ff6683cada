"""A GitHub for tests: it answers only what GitHub's own description allows."""
