"""Every order in which the results of two and of three stacked runs can arrive, in every combination of outcomes.

The tables were derived by reasoning from the rules, not computed. A row has the results of the runs {1}, {1,2} and
{1,2,3}, passed (p) or failed (f); a column is the order in which they arrive; an entry is the outcome of 1, 2 and 3:
M merged, F failed, T tested again.

Results that arrive after their run was discarded are delivered as well, and must change nothing.
"""

from collections.abc import Callable
from itertools import chain, permutations

import pytest

from mergeyard.domain.states import CheckState
from tests.support.story import Numbers, Story

Table = dict[str, tuple[str, ...]]
Case = tuple[str, Numbers, str]

RESULTS = {"p": CheckState.PASSED, "f": CheckState.FAILED}


def every(outcome: str, orders: int) -> tuple[str, ...]:
    return (outcome,) * orders


# Without optimistic merging the order never matters: the first failed PR fails when all ahead have merged, and
# every PR behind a failed one is tested again, also if its run passed.

TWO: Table = {
    #      1·2    2·1
    "pp": ("MM", "MM"),
    "pf": ("MF", "MF"),
    "fp": ("FT", "FT"),
    "ff": ("FT", "FT"),
}
THREE: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ppp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ppf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "pfp": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "pff": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "fpp": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "fpf": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "ffp": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "fff": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}

# Depth 0: a failed PR at the front fails at once, unless a passed run behind it arrived first and clears it.

TWO_AT_DEPTH_0: Table = {
    #      1·2    2·1
    "pp": ("MM", "MM"),
    "pf": ("MF", "MF"),
    "fp": ("FT", "MM"),
    "ff": ("FT", "FT"),
}
THREE_AT_DEPTH_0: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ppp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ppf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    # 2 fails as soon as 1 has merged, so the result of 3 must arrive before that.
    "pfp": ("MFT", "MMM", "MFT", "MMM", "MMM", "MMM"),
    "pff": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    # 1 fails at once, so the result of 2 or 3 must arrive before that.
    "fpp": ("FTT", "FTT", "MMM", "MMM", "MMM", "MMM"),
    "fpf": ("FTT", "FTT", "MMF", "MMF", "FTT", "MMF"),
    "ffp": ("FTT", "FTT", "FTT", "MMM", "MMM", "MMM"),
    "fff": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}
# While nothing lands, 1 has not merged, so 2 cannot be blamed yet, and 3 always clears it in time.
THREE_AT_DEPTH_0_LANDING_LAST: Table = {**THREE_AT_DEPTH_0, "pfp": every("MMM", 6)}

# Depth 1: a failed PR at the front also waits for the next run.

TWO_AT_DEPTH_1: Table = {
    #      1·2    2·1
    "pp": ("MM", "MM"),
    "pf": ("MF", "MF"),
    "fp": ("MM", "MM"),
    "ff": ("FT", "FT"),
}
THREE_AT_DEPTH_1: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ppp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ppf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "pfp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "pff": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "fpp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "fpf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    # 1 fails when both 1 and 2 failed: 1 does not wait for 3, but its result counts if it arrived before.
    "ffp": ("FTT", "MMM", "FTT", "MMM", "MMM", "MMM"),
    "fff": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}

# Depth 2: it waits for both, so the order does not matter.

THREE_AT_DEPTH_2: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ppp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ppf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "pfp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "pff": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "fpp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "fpf": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "ffp": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "fff": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}


def not_optimistic() -> Story:
    return Story(concurrency=3)


def optimistic(depth: int) -> Callable[[], Story]:
    return lambda: Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=depth)


POLICIES: dict[str, tuple[Callable[[], Story], Table, Table]] = {
    # The settings, the outcomes when every landing is performed at once, and when all are performed at the end.
    "not optimistic, two": (not_optimistic, TWO, TWO),
    "not optimistic, three": (not_optimistic, THREE, THREE),
    "depth 0, two": (optimistic(0), TWO_AT_DEPTH_0, TWO_AT_DEPTH_0),
    "depth 0, three": (optimistic(0), THREE_AT_DEPTH_0, THREE_AT_DEPTH_0_LANDING_LAST),
    "depth 1, two": (optimistic(1), TWO_AT_DEPTH_1, TWO_AT_DEPTH_1),
    "depth 1, three": (optimistic(1), THREE_AT_DEPTH_1, THREE_AT_DEPTH_1),
    "depth 2, two": (optimistic(2), TWO_AT_DEPTH_1, TWO_AT_DEPTH_1),
    "depth 2, three": (optimistic(2), THREE_AT_DEPTH_2, THREE_AT_DEPTH_2),
}


def cases(table: Table) -> list[Case]:
    numbers = range(1, len(next(iter(table))) + 1)
    return [
        (results, order, outcome)
        for results, outcomes in table.items()
        for order, outcome in zip(permutations(numbers), outcomes, strict=True)
    ]


LANDING_AT_ONCE = [(create_story, *case) for create_story, table, _ in POLICIES.values() for case in cases(table)]
LANDING_LAST = [(create_story, *case) for create_story, _, table in POLICIES.values() for case in cases(table)]


def names(landing_last: bool) -> list[str]:
    return [
        f"{policy}: {results}, {'·'.join(map(str, order))} → {outcome}"
        for policy, (_, at_once, last) in POLICIES.items()
        for results, order, outcome in cases(last if landing_last else at_once)
    ]


def report_all(story: Story, results: str, order: Numbers) -> None:
    """Reports the results of all first runs, also of those that were discarded meanwhile."""
    runs = {number: story.run_of(number) for number in order}
    for number in order:
        story.late_result(runs[number], RESULTS[results[number - 1]])


def outcome_of(story: Story, number: int) -> str:
    return {"merged": "M", "failed": "F", "testing": "T"}[story.state(number)]


def numbers_with(wanted: str, outcome: str) -> Numbers:
    return tuple(number for number, each in enumerate(outcome, start=1) if each == wanted)


def check_outcome(story: Story, outcome: str) -> None:
    numbers = range(1, len(outcome) + 1)
    assert "".join(outcome_of(story, number) for number in numbers) == outcome
    assert story.merged_prs() == numbers_with("M", outcome)
    assert tuple(chain(*story.landings())) == numbers_with("M", outcome)
    again = numbers_with("T", outcome)
    assert story.runs() == tuple(again[: place + 1] for place in range(len(again)))
    for number in numbers_with("F", outcome):
        assert story.reason(number) == "test_run_failed"
        assert story.failed_on(number) == tuple(range(1, number))


def check_that_the_rest_merges(story: Story, outcome: str) -> None:
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (*numbers_with("M", outcome), *numbers_with("T", outcome))
    assert story.queue_text() == "main"


@pytest.mark.parametrize(
    ("create_story", "results", "order", "outcome"), LANDING_AT_ONCE, ids=names(landing_last=False)
)
def test_results_in_any_order_when_landings_are_performed_at_once(
    create_story: Callable[[], Story], results: str, order: Numbers, outcome: str
):
    story = create_story()
    story.submit(*sorted(order))
    report_all(story, results, order)
    check_outcome(story, outcome)
    check_that_the_rest_merges(story, outcome)


@pytest.mark.parametrize(("create_story", "results", "order", "outcome"), LANDING_LAST, ids=names(landing_last=True))
def test_results_in_any_order_when_landings_are_performed_at_the_end(
    create_story: Callable[[], Story], results: str, order: Numbers, outcome: str
):
    story = create_story()
    story.withhold_landings()
    story.submit(*sorted(order))
    report_all(story, results, order)
    story.stop_withholding()
    check_outcome(story, outcome)
    check_that_the_rest_merges(story, outcome)
