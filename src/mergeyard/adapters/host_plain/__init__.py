"""A host that is nothing but bare Git repositories in a folder, their pull requests kept in refs."""
