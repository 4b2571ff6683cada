"""Forges as the stories see them: what people and their CI do there, in the same words for all."""
