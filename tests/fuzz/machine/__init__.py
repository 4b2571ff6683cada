"""Clients that do anything in any order, and a model that knows only what a client can know for sure."""
