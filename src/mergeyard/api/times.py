"""Time on the wire: ISO 8601 in UTC with milliseconds, from and to the instants of the domain."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mergeyard.domain.instants import Instant

BARE_EPOCH = datetime(1970, 1, 1)
EPOCH = BARE_EPOCH.replace(tzinfo=UTC)
A_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)", re.ASCII)


@lru_cache(maxsize=4096)
def written(instant: Instant) -> str:
    return (BARE_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds") + "Z"


def read(text: str) -> Instant | None:
    """None when it is no time with an offset: a time without one could be meant anywhere."""
    if not A_TIME.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text.upper())
        return Instant((time - EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return None
