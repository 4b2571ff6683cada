"""A soak is judged by its figures: what grows without end is told, and what is only a full cache is not."""

from collections import Counter

import pytest

from tests.soak.figures import CACHE, Figures, Stretch, wrong_with
from tests.soak.sampling import MIB, Disk, Sample


def a_sample(ended: int = 0, memory: float = 100, database: int = 2 * CACHE, **facts: int) -> Sample:
    usual = {"descriptors": 30, "threads": 12, "children": 2, "zombies": 0}
    return Sample(seconds=ended, ended=ended, memory=int(memory * MIB), delay=1.0, database=database, **usual | facts)


def figures(*samples: Sample, after: Sample | None = None) -> Figures:
    disk = Disk(0, 0, 0, 0)
    return Figures(
        stretches=[Stretch(sample.seconds, sample.ended, 60.0, 8, sample, disk) for sample in samples],
        samples=[*samples],
        idle_before=a_sample(),
        idle_after=after or a_sample(),
        milliseconds={},
        states=Counter(),
        landings=0,
        webhooks=0,
        seconds_until_clean=0.1,
        seconds_until_told=0.1,
    )


def growing_by(mib_per_thousand: float, database: int = 2 * CACHE) -> Figures:
    return figures(*(a_sample(ended, 100 + ended * mib_per_thousand / 1000, database) for ended in range(0, 5000, 50)))


def test_a_soak_in_which_nothing_grows_is_fine():
    assert list(wrong_with(growing_by(0.1))) == []


def test_memory_that_grows_with_those_who_ended_is_told():
    assert list(wrong_with(growing_by(5))) == ["memory grows by 5.0 MiB with every 1,000 pull requests that ended"]


def test_as_long_as_caches_fill_nothing_is_said_of_the_slope():
    assert list(wrong_with(growing_by(5, database=CACHE // 2))) == []


def test_there_is_an_end_to_what_caches_may_take():
    assert list(wrong_with(growing_by(100, database=CACHE // 2))) == ["memory went up to 595 MiB"]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (a_sample(descriptors=39), "30 descriptors were open before, and 39 afterwards"),
        (a_sample(children=3), "2 other processes were there before, and 3 afterwards, 0 of them dead and not buried"),
        (a_sample(zombies=1), "2 other processes were there before, and 2 afterwards, 1 of them dead and not buried"),
    ],
)
def test_whatever_is_held_in_the_end_and_was_not_in_the_beginning_is_told(after: Sample, words: str):
    assert list(wrong_with(figures(a_sample(), after=after))) == [words]


def with_threads(*threads: int, ended: int = 5000) -> Figures:
    """The last of them at rest."""
    *busy, rest = threads
    return figures(*(a_sample(ended, threads=count) for count in busy), after=a_sample(threads=rest))


def test_threads_that_were_there_when_it_was_warm_may_stay():
    assert list(wrong_with(with_threads(12, 20, 24, 24, 24, 24))) == []


def test_threads_that_came_later_are_told():
    growing = with_threads(*range(12, 32), 31)
    assert list(wrong_with(growing)) == ["there were 17 threads when it was warm, and 31 afterwards"]


def test_as_long_as_pools_fill_nothing_is_said_of_threads():
    assert list(wrong_with(with_threads(*range(12, 32), 31, ended=500))) == []


def test_there_is_an_end_to_what_pools_may_take():
    assert list(wrong_with(with_threads(12, 65, 12, ended=500))) == ["there were 65 threads at once"]
