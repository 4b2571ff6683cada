"""Tells others what happened: whoever has something to say reads the journal, from where it stopped."""
