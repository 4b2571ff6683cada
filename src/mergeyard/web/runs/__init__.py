"""The pages of runs, and of what checks wrote in them."""
