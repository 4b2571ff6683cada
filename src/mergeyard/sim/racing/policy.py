"""What a policy of merging hears and orders, and nothing that a queue could not know."""

from typing import Protocol

from msgspec import Struct, field

Number = int
"""Of a change: it counts from 0 in the order of arrival."""


class Change(Struct, frozen=True, kw_only=True):
    """A pull request as everybody sees it."""

    number: Number
    at: int
    """When it arrives, in milliseconds."""
    parts: frozenset[int] = frozenset({0})
    author: str = ""
    size: int = 1
    """Lines."""


class Trial(Struct, frozen=True, eq=False, kw_only=True):
    """One run, which is itself and no other, even if another one tests the same."""

    stack: tuple[Number, ...]
    """All that it holds beside what has merged, from the bottom up."""
    tests: int = 1
    """How many of them, from the end, it is about: it takes as long as the longest of these."""
    base: int | None = None
    """Upon the first so many merges; None: upon all that there are when it starts."""


class Verdict(Struct, frozen=True, kw_only=True):
    """A change is decided for good."""

    number: Number
    merged: bool
    by: tuple[Trial, ...] = ()
    """The runs that this rests on; the others were for nothing."""


class News(Struct, frozen=True):
    arrived: tuple[Change, ...] = ()
    finished: tuple[tuple[Trial, bool], ...] = ()
    """Runs that ended, and whether they are green."""


class Orders(Struct):
    decided: list[Verdict] = field(default_factory=list[Verdict])
    """In the order of merging."""
    start: list[Trial] = field(default_factory=list[Trial])
    """Upon what has merged, including what is decided here."""
    stop: list[Trial] = field(default_factory=list[Trial])
    wake_at: int | None = None
    """When to be asked again, even if nothing happens until then."""

    def merge(self, number: Number, *by: Trial) -> None:
        self.decided.append(Verdict(number=number, merged=True, by=by))

    def fail(self, number: Number, *by: Trial) -> None:
        self.decided.append(Verdict(number=number, merged=False, by=by))


class Policy(Protocol):
    def move(self, news: News, now: int, /) -> Orders: ...
