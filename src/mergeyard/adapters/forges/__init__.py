"""Forges, each as a host: their pull requests, checks, comments and merges over their web APIs."""
