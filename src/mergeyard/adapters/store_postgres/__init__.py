"""Keeps everything in a PostgreSQL database, which any number of replicas share."""
