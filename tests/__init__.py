"""Tests, one folder per kind."""
