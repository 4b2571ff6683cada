"""A self-hosted merge queue: the bytes that were tested are the bytes that land."""

__version__ = "0.1.0"
