"""A forecast: many courses of the same queue, and when each of its pull requests merges in most of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from random import Random

from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.sim.foretelling.beliefs import Beliefs
from mergeyard.sim.foretelling.course import Course

FEWEST = 9
"""Courses: of so many the latest is what nine of ten come before. Of fewer nobody knows that."""


def foretell(queue: Queue, now: Instant, dice: Iterable[Random]) -> Mapping[Ticket, Expected | None]:
    """One course for each of the dice. Nobody should promise a time to one that merges in less than half of them, nor
    to one that is held out of the line: what it conflicts with, no dice tell."""
    instants, courses = defaultdict[Ticket, list[Instant]](list), 0
    for drawn in dice:
        courses += 1
        for ticket, instant in Course(queue, now, Beliefs(queue, now, drawn)).merges().items():
            instants[ticket].append(instant)
    if courses < FEWEST:
        return {}
    likely = {ticket for ticket, merges in instants.items() if 2 * len(merges) >= courses and ticket not in queue.held}
    return {ticket: _expected(instants[ticket]) if ticket in likely else None for ticket in queue.submissions}


def _expected(instants: Sequence[Instant]) -> Expected:
    ordered = sorted(instants)
    return Expected(middle=_quantile(ordered, 0.5), late=_quantile(ordered, 0.9))


def _quantile(ordered: Sequence[Instant], share: float) -> Instant:
    """One more of the same kind falls into every gap between them, before the first and behind the last, with the same
    chance: so many must lie before it, also where they are few."""
    place = ceil(share * (len(ordered) + 1))
    return ordered[min(place, len(ordered)) - 1]
