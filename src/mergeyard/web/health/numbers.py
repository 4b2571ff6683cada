"""How this page writes numbers; what is not known is a dash."""

from collections.abc import Callable

from mergeyard.domain.instants import MINUTE
from mergeyard.web.words import lasting

Writing = Callable[[float | None], str]
UNKNOWN = "–"


def count(number: float | None) -> str:
    return UNKNOWN if number is None else f"{round(number):,}"


def share(number: float | None) -> str:
    """Rounded down: only what is complete is 100 %."""
    return UNKNOWN if number is None else f"{int(number * 100)} %"


def ratio(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.2f}"


def minutes(milliseconds: float | None) -> str:
    """However many: CI is paid by the minute, so days and hours would hide what it costs."""
    return UNKNOWN if milliseconds is None else f"{round(milliseconds / MINUTE):,}"


def time(milliseconds: float | None) -> str:
    return lasting(milliseconds)
