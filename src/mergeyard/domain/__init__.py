"""The nouns of the queue: frozen values that import nothing but msgspec and each other."""
