"""Decides whether to ask again, and how long to pause before."""

import random

from msgspec import Struct

SHORTEST = 0.2
LONGEST = 10.0


class Patience(Struct, frozen=True):
    """In seconds."""

    altogether: float = 60
    """Until no further attempt is begun."""
    one_answer: float = 60
    """A list of targets may be twenty megabytes."""


def pause_after(attempt: int, retry_after: str | None) -> float:
    """Twice as long every time, and never all at once; at least as long as the server asks for."""
    longest = min(LONGEST, SHORTEST * 2 ** min(attempt, 10))
    return max(random.uniform(longest / 2, longest), asked_for(retry_after))


def asked_for(retry_after: str | None) -> float:
    """Our server says it in seconds. A date comes only from others, and our own pace will do for them."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0
