"""Thousands of landings on real repositories by the production service, compared with what plain git does."""
