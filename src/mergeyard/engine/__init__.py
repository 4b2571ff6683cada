"""The verbs of the queue: pure functions over the nouns, one decision per file; `decide` is the only door."""
