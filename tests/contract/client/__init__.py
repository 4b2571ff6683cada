"""The client against the server: it covers every endpoint and decodes every response."""
