"""Time as forges write it, from and to the instants of the domain."""

from datetime import UTC, datetime, timedelta

from mergeyard.domain.instants import SECOND, Instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time: datetime) -> Instant:
    return Instant((time - EPOCH) // timedelta(milliseconds=1))


def written(instant: Instant) -> str:
    """To the second before: not every forge knows smaller ones."""
    return (EPOCH + timedelta(seconds=instant // SECOND)).strftime("%Y-%m-%dT%H:%M:%SZ")
