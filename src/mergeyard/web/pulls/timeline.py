"""What happened to a pull request, newest first, and of a long story one part at a time."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.journal import OURSELVES, PrChanged
from mergeyard.service.journaling import name_of
from mergeyard.service.views import sentence

MOST_MOMENTS = 200


class Moment(Struct, frozen=True):
    entry: PrChanged
    sentence: str
    actor: str


class Timeline(Struct, frozen=True):
    moments: tuple[Moment, ...]
    earlier: int
    """How many were before these; so many from the beginning are the next part."""
    later: int


def timeline(entries: Sequence[PrChanged], first: int | None) -> Timeline:
    """Of the first so many that ever happened, the last: whatever happens meanwhile, this part stays what it is."""
    later = 0 if first is None else max(0, len(entries) - first)
    part = entries[later : later + MOST_MOMENTS]
    return Timeline(tuple(map(_moment, part)), len(entries) - later - len(part), later)


def actor(entry: PrChanged) -> str:
    return "the queue" if entry.actor == OURSELVES else name_of(entry.actor)


def _moment(entry: PrChanged) -> Moment:
    return Moment(entry, sentence(entry.reason, entry.words, upon=entry.upon), actor(entry))
