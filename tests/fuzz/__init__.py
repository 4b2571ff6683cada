"""Fuzz tests: random requests to a real server, random input for parsers, and random sequences of client requests."""
