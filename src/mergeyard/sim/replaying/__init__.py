"""The what-if replay: how a queue would have done in its own past, had its settings been others."""
