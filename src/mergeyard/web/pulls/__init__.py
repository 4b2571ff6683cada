"""The page of a pull request."""
