"""Stateful test of the HTTP API: random requests of several clients, and a model with what a client can know."""
