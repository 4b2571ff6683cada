"""Stories: what the queue does, step by step, with its state rendered as text."""
