"""Priorities, by name and by number: the smaller, the sooner."""

PRIORITIES = {"urgent": 0, "high": 10, "medium": 100, "low": 200}
URGENT = PRIORITIES["urgent"]
USUAL = PRIORITIES["medium"]
LOWEST = 255
_NAMES = {number: name for name, number in PRIORITIES.items()}


def shown(priority: int) -> str:
    """By its name, if it has one."""
    return _NAMES.get(priority, str(priority))


def named(word: str) -> int | None:
    """By its name or as a number; None when it is neither."""
    if word in PRIORITIES:
        return PRIORITIES[word]
    is_number = word.isascii() and word.isdecimal() and len(word) <= len(str(LOWEST))
    return int(word) if is_number and int(word) <= LOWEST else None
