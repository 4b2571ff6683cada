"""The checks of a soak report a leak, and do not report a cache that fills."""

from collections import Counter
from random import Random

import pytest

from tests.soak.figures import CACHE, Interval, Slope, SoakResult, estimate_slope, failed_resource_checks
from tests.soak.samples import MIB, Disk, Sample


def a_sample(ended: int = 0, memory: float = 100, database: int = 2 * CACHE, **facts: int) -> Sample:
    usual = {"descriptors": 30, "threads": 12, "children": 2, "zombies": 0}
    return Sample(seconds=ended, ended=ended, memory=int(memory * MIB), delay=1.0, database=database, **usual | facts)


def figures(*samples: Sample, after: Sample | None = None) -> SoakResult:
    disk = Disk(0, 0, 0, 0)
    return SoakResult(
        intervals=[Interval(sample.seconds, sample.ended, 60.0, 8, sample, disk) for sample in samples],
        samples=[*samples],
        idle_before=a_sample(),
        idle_after=after or a_sample(),
        milliseconds={},
        states=Counter(),
        landings=0,
        webhooks=0,
        seconds_until_clean=0.1,
        seconds_until_delivered=0.1,
    )


def growing_by(mib_per_thousand: float, database: int = 2 * CACHE) -> SoakResult:
    return figures(*(a_sample(ended, 100 + ended * mib_per_thousand / 1000, database) for ended in range(0, 5000, 50)))


def test_soak_without_growth_passes():
    assert list(failed_resource_checks(growing_by(0.1))) == []


def test_memory_that_grows_with_concluded_pull_requests_is_reported():
    assert list(failed_resource_checks(growing_by(5))) == ["memory grows by 5.0 MiB per 1,000 concluded pull requests"]


def test_slope_is_not_checked_while_caches_fill():
    assert list(failed_resource_checks(growing_by(5, database=CACHE // 2))) == []


def test_memory_of_caches_is_limited():
    assert list(failed_resource_checks(growing_by(100, database=CACHE // 2))) == ["memory reached 595 MiB"]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (a_sample(descriptors=39), "30 descriptors were open before the traffic and 39 after it"),
        (a_sample(children=3), "2 child processes before the traffic and 3 after it, 0 of them zombies"),
        (a_sample(zombies=1), "2 child processes before the traffic and 2 after it, 1 of them zombies"),
    ],
)
def test_resources_that_are_not_released_are_reported(after: Sample, message: str):
    assert list(failed_resource_checks(figures(a_sample(), after=after))) == [message]


def with_threads(*threads: int, ended: int = 5000) -> SoakResult:
    """The last number is measured at idle."""
    *busy, idle = threads
    return figures(*(a_sample(ended, threads=count) for count in busy), after=a_sample(threads=idle))


def test_threads_from_the_warm_up_may_stay():
    assert list(failed_resource_checks(with_threads(12, 20, 24, 24, 24, 24))) == []


def test_threads_created_later_are_reported():
    growing = with_threads(*range(12, 32), 31)
    assert list(failed_resource_checks(growing)) == ["there were 17 threads after the warm-up and 31 after the traffic"]


def test_threads_are_not_checked_while_pools_fill():
    assert list(failed_resource_checks(with_threads(*range(12, 32), 31, ended=500))) == []


def test_number_of_threads_is_limited():
    assert list(failed_resource_checks(with_threads(12, 65, 12, ended=500))) == ["there were 65 threads"]


def test_straight_line_has_its_slope_and_no_error():
    found = estimate_slope(range(100), [3.0 + 2.0 * at for at in range(100)])
    assert found.value == pytest.approx(2.0)
    assert found.error == pytest.approx(0.0, abs=1e-9)


def test_noise_is_not_reported_as_growth():
    random = Random(1)
    found = estimate_slope(range(1000), [random.gauss(100, 10) for _ in range(1000)])
    assert found.lower_bound < 0 < found.value + 3 * found.error


def test_growth_is_found_in_noise():
    random = Random(1)
    found = estimate_slope(range(1000), [random.gauss(100, 10) + at / 10 for at in range(1000)])
    assert found.lower_bound > 0.08


@pytest.mark.parametrize("across", [[], [1.0], [1.0, 1.0, 1.0, 1.0]])
def test_too_few_points_give_an_infinite_error(across: list[float]):
    assert estimate_slope(across, across) == Slope(0.0, float("inf"))
