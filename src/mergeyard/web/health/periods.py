"""The period that a reader chose, and the hours or days that it is drawn in; all of them in UTC."""

from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.instants import DAY, HOUR, Instant, later


class By(StrEnum):
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> int:
        return HOUR if self is By.HOUR else DAY


class Length(Struct, frozen=True):
    """How far back, how that is called, and by what it may be drawn; the first of these unless asked otherwise."""

    name: str
    words: str
    milliseconds: int
    by: tuple[By, ...]


LENGTHS = {
    length.name: length
    for length in (
        Length("24h", "24 hours", DAY, (By.HOUR,)),
        Length("7d", "7 days", 7 * DAY, (By.DAY, By.HOUR)),
        Length("30d", "30 days", 30 * DAY, (By.DAY, By.HOUR)),
        Length("90d", "90 days", 90 * DAY, (By.DAY,)),
    )
}
USUAL = "7d"


class Period(Struct, frozen=True):
    """It ends now, and begins with a whole hour or day; the one before it is the same span of time, moved back."""

    length: Length
    by: By
    since: Instant
    until: Instant

    @property
    def starts(self) -> tuple[Instant, ...]:
        return tuple(map(Instant, range(self.since, self.until, self.by.length)))

    @property
    def before(self) -> tuple[Instant, Instant]:
        return later(self.since, -self.length.milliseconds), later(self.until, -self.length.milliseconds)


def chosen(length: str, by: str, now: Instant) -> Period:
    """What nobody can choose is taken for the usual."""
    far = LENGTHS.get(length, LENGTHS[USUAL])
    parts = By(by) if by in far.by else far.by[0]
    whole = HOUR if far.milliseconds == DAY else DAY
    until = later(now, 1)
    end = -(-until // whole) * whole
    return Period(far, parts, Instant(end - far.milliseconds), until)


def name_of(start: Instant, by: By) -> str:
    form = "%-d %b %H:%M" if by is By.HOUR else "%a %-d %b"
    return datetime.fromtimestamp(start / 1000, UTC).strftime(form)
