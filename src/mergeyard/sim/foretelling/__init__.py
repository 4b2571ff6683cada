"""Foretells when those in a queue will merge: the production engine goes on from where it stands, many times over."""
