"""The API as a client meets it: the real application, with the real service, git and store behind it."""
