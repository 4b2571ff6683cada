"""Chance that is the same for everybody who asks the same question, in any process and in any order."""

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def chance(*question: int | tuple[int, ...]) -> float:
    """From 0 up to 1. The hash of integers is the same in every process; it is only mixed here."""
    mixed = (hash(question) + GOLDEN) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return (mixed ^ (mixed >> 31)) / (MASK + 1)
