"""Scenarios through the whole service at every forge."""
