"""comments."""
