"""Scenarios through the whole service: real git, a real store, and a clock that the test moves."""
