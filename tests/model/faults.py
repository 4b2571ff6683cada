"""What can go wrong between the queue and the world; each kind is fully on or off in a world."""

from random import Random

from msgspec import Struct


class Faults(Struct, frozen=True):
    tasks_skipped: bool = False
    """Work is put off again and again."""
    tasks_repeated: bool = False
    """Work is done twice, and so is its report."""
    answers_lost: bool = False
    """Work is done, and nobody hears of it."""
    answers_late: bool = False
    """Reports arrive in another order, some of them much later."""
    news_lost: bool = False
    """Nobody tells the queue what happened at the host, until it looks for itself."""
    news_doubled: bool = False
    host_outages: bool = False
    mirrors_lost: bool = False
    """Commits that no ref leads to are gone."""


def draw_faults(rng: Random) -> Faults:
    if rng.random() < 0.2:
        return Faults()
    return Faults(*(rng.random() < 0.35 for _ in Faults.__struct_fields__))
