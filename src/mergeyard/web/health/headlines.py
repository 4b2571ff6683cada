"""The numbers at the top of the page, each beside what it was in the period before."""

from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct

from mergeyard.service.history.summing import Summary
from mergeyard.web.health import numbers
from mergeyard.web.health.numbers import Writing


class Wish(Enum):
    MORE = auto()
    LESS = auto()
    NEITHER = auto()


class Headline(Struct, frozen=True, kw_only=True):
    name: str
    value: str
    before: str
    change: str = ""
    verdict: str = ""
    """Better or worse, where one of them is wished for."""


def headlines(now: Summary, before: Summary) -> list[Headline]:
    def line(name: str, what: Callable[[Summary], float | None], written: Writing, wish: Wish) -> Headline:
        return _headline(name, what(now), what(before), written, wish)

    return [
        line("Merged", lambda time: time.merged, numbers.count, Wish.MORE),
        line("Success", lambda time: time.success, numbers.share, Wish.MORE),
        line("Median in queue", lambda time: time.median, numbers.time, Wish.LESS),
        line("95 % merge within", lambda time: time.slow, numbers.time, Wish.LESS),
        line("Runs per merged", lambda time: time.runs_per_merged, numbers.ratio, Wish.LESS),
        line("CI minutes spent", lambda time: time.spent, numbers.minutes, Wish.NEITHER),
        line("CI minutes saved", lambda time: time.saved, numbers.minutes, Wish.MORE),
    ]


def _headline(name: str, now: float | None, before: float | None, written: Writing, wish: Wish) -> Headline:
    was = "nothing before" if before is None else f"{written(before)} before"
    if now is None or not before:
        return Headline(name=name, value=written(now), before=was)
    if written(now) == written(before):
        return Headline(name=name, value=written(now), before=was, change="as before")
    verdict = _verdict(now > before, wish)
    return Headline(name=name, value=written(now), before=was, change=_change(now, before), verdict=verdict)


def _change(now: float, before: float) -> str:
    """In hundredths of what it was, unless nobody can imagine that."""
    percent = abs(now - before) / abs(before) * 100
    size = f"{percent:.0f} %" if 1 <= percent < 1000 else ("a little" if percent < 1 else "many times")
    return f"{'▲' if now > before else '▼'} {size}"


def _verdict(more: bool, wish: Wish) -> str:
    if wish is Wish.NEITHER:
        return ""
    return "better" if more == (wish is Wish.MORE) else "worse"
