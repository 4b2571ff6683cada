"""The deployment files are consistent, and name only what exists in the code."""
