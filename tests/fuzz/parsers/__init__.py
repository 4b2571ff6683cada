"""What is read from outside gives a value, or the refusal that is documented: never another exception."""
