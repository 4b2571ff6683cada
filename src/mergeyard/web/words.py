"""Every word that the pages have for a state, a time or a number."""

from datetime import UTC, datetime

from mergeyard.domain.instants import DAY, HOUR, MINUTE, SECOND, Instant

PR_STATES = {
    "not_ready": "not ready",
    "pending": "waiting",
    "testing": "testing",
    "tests_passed": "passed",
    "pending_failure": "failing",
    "merged": "merged",
    "failed": "failed",
    "cancelled": "cancelled",
}
QUEUE_STATES = {
    "RUNNING": "running",
    "PAUSED": "paused",
    "DRAINING": "draining",
    "SWITCHING_MODES": "switching modes",
}
RUN_STATES = {
    "preparing": "preparing",
    "in_progress": "testing",
    "succeeded": "passed",
    "failed": "failed",
    "cancelled": "stopped",
}

CHECK_STATES = {
    "success": "passed",
    "skipped": "skipped",
    "neutral": "neutral",
    "failure": "failed",
    "error": "error",
    "pending": "running",
    "missing": "not reported yet",
    "never": "never reported",
}


def lasting(milliseconds: float | None) -> str:
    """In the two largest units: 1 d 4 h, 12 min, 40 s."""
    if milliseconds is None:
        return "–"
    rest, parts = int(max(0, milliseconds)), list[str]()
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        count, rest = divmod(rest, unit)
        if count and (name != "s" or not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def ago(instant: Instant | None, now: Instant) -> str:
    if instant is None:
        return "–"
    return "just now" if now - instant < 5 * SECOND else f"{lasting(now - instant)} ago"


def ahead(instant: Instant | None, now: Instant) -> str:
    if instant is None:
        return "not known yet"
    return "any moment" if instant - now < 5 * SECOND else f"in about {lasting(instant - now)}"


def clock(instant: Instant | None) -> str:
    """As machines read it; the page shows it in the reader's own zone."""
    if instant is None:
        return ""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(instant: Instant | None) -> str:
    """Exactly, for people: 15 Nov 2026, 14:40:12 UTC."""
    return "–" if instant is None else f"{datetime.fromtimestamp(instant / 1000, UTC):%-d %b %Y, %H:%M:%S} UTC"


def time_of_day(instant: Instant | None) -> str:
    return "–" if instant is None else f"{datetime.fromtimestamp(instant / 1000, UTC):%H:%M} UTC"


def short(sha: str | None) -> str:
    return (sha or "–")[:8]


def count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
