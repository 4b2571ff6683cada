"""The client against the server: it asks everything, and understands every answer."""
