"""Thousands of landings on real repositories, by the production service, judged by plain git."""
