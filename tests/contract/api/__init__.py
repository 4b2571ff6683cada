"""The API as a client sees it: the real application with the real service, git and store behind it."""
