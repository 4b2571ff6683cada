"""Stories: what the queue does, read as pictures."""
