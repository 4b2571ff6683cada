"""A fake GitHub whose responses conform to GitHub's published API description."""
