"""Every order in which the results of two and of three stacked runs can arrive, in every combination of outcomes.

The tables were written down by reasoning from the rules, not computed. A row is what the runs {1}, {1,2} and {1,2,3}
say, green or red; a column is the order in which they say it; an entry is what becomes of 1, 2 and 3:
M merged, F failed, T tested again.

Results that come after their run was given up are delivered all the same, and must change nothing.
"""

from collections.abc import Callable
from itertools import chain, permutations

import pytest

from mergeyard.domain.states import CheckState
from tests.support.story import Numbers, Story

Table = dict[str, tuple[str, ...]]
Case = tuple[str, Numbers, str]

VERDICTS = {"g": CheckState.PASSED, "r": CheckState.FAILED}


def every(outcome: str, orders: int) -> tuple[str, ...]:
    return (outcome,) * orders


# Without optimistic merging the order never matters: who fails first is judged when all ahead have merged, and
# whoever stands behind somebody that failed is tested again, also if it was green.

TWO: Table = {
    #      1·2    2·1
    "gg": ("MM", "MM"),
    "gr": ("MF", "MF"),
    "rg": ("FT", "FT"),
    "rr": ("FT", "FT"),
}
THREE: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ggg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ggr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "grg": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "grr": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "rgg": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "rgr": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "rrg": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
    "rrr": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}

# Depth 0: a red one at the front fails at once, unless a green one behind it came first and speaks for it.

TWO_AT_DEPTH_0: Table = {
    #      1·2    2·1
    "gg": ("MM", "MM"),
    "gr": ("MF", "MF"),
    "rg": ("FT", "MM"),
    "rr": ("FT", "FT"),
}
THREE_AT_DEPTH_0: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ggg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ggr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    # 2 fails as soon as 1 has merged, so 3 must have spoken before that.
    "grg": ("MFT", "MMM", "MFT", "MMM", "MMM", "MMM"),
    "grr": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    # 1 fails at once, so 2 or 3 must have spoken before that.
    "rgg": ("FTT", "FTT", "MMM", "MMM", "MMM", "MMM"),
    "rgr": ("FTT", "FTT", "MMF", "MMF", "FTT", "MMF"),
    "rrg": ("FTT", "FTT", "FTT", "MMM", "MMM", "MMM"),
    "rrr": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}
# While nothing lands, 1 has not merged, so nobody can blame 2 yet, and 3 always speaks in time for it.
THREE_AT_DEPTH_0_LANDING_LAST: Table = {**THREE_AT_DEPTH_0, "grg": every("MMM", 6)}

# Depth 1: a red one at the front also waits for the run of the next.

TWO_AT_DEPTH_1: Table = {
    #      1·2    2·1
    "gg": ("MM", "MM"),
    "gr": ("MF", "MF"),
    "rg": ("MM", "MM"),
    "rr": ("FT", "FT"),
}
THREE_AT_DEPTH_1: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ggg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ggr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "grg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "grr": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "rgg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "rgr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    # 1 fails when both 1 and 2 are red: 3 is too far behind to be waited for, but counts if it was there before.
    "rrg": ("FTT", "MMM", "FTT", "MMM", "MMM", "MMM"),
    "rrr": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}

# Depth 2: it waits for both, so the order does not matter any more.

THREE_AT_DEPTH_2: Table = {
    #       1·2·3  1·3·2  2·1·3  2·3·1  3·1·2  3·2·1
    "ggg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "ggr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "grg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "grr": ("MFT", "MFT", "MFT", "MFT", "MFT", "MFT"),
    "rgg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "rgr": ("MMF", "MMF", "MMF", "MMF", "MMF", "MMF"),
    "rrg": ("MMM", "MMM", "MMM", "MMM", "MMM", "MMM"),
    "rrr": ("FTT", "FTT", "FTT", "FTT", "FTT", "FTT"),
}


def cautious() -> Story:
    return Story(concurrency=3)


def optimistic(depth: int) -> Callable[[], Story]:
    return lambda: Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=depth)


POLICIES: dict[str, tuple[Callable[[], Story], Table, Table]] = {
    # What is told, how it ends when every landing is performed at once, and when all are performed at the end.
    "not optimistic, two": (cautious, TWO, TWO),
    "not optimistic, three": (cautious, THREE, THREE),
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
        (verdicts, order, outcome)
        for verdicts, outcomes in table.items()
        for order, outcome in zip(permutations(numbers), outcomes, strict=True)
    ]


LANDING_AT_ONCE = [(begin, *case) for begin, table, _ in POLICIES.values() for case in cases(table)]
LANDING_LAST = [(begin, *case) for begin, _, table in POLICIES.values() for case in cases(table)]


def names(landing_last: bool) -> list[str]:
    return [
        f"{policy}: {verdicts}, {'·'.join(map(str, order))} → {outcome}"
        for policy, (_, at_once, last) in POLICIES.items()
        for verdicts, order, outcome in cases(last if landing_last else at_once)
    ]


def hear(story: Story, verdicts: str, order: Numbers) -> None:
    """Of every one of the first runs, whether it is still going on or not."""
    runs = {number: story.run_of(number) for number in order}
    for number in order:
        story.late_result(runs[number], VERDICTS[verdicts[number - 1]])


def outcome_of(story: Story, number: int) -> str:
    return {"merged": "M", "failed": "F", "testing": "T"}[story.state(number)]


def of_those(wanted: str, outcome: str) -> Numbers:
    return tuple(number for number, each in enumerate(outcome, start=1) if each == wanted)


def check_outcome(story: Story, outcome: str) -> None:
    numbers = range(1, len(outcome) + 1)
    assert "".join(outcome_of(story, number) for number in numbers) == outcome
    assert story.merged() == of_those("M", outcome)
    assert tuple(chain(*story.landings())) == of_those("M", outcome)
    again = of_those("T", outcome)
    assert story.runs() == tuple(again[: place + 1] for place in range(len(again)))
    for number in of_those("F", outcome):
        assert story.reason(number) == "test_run_failed"
        assert story.failed_upon(number) == tuple(range(1, number))


def check_that_the_rest_merges(story: Story, outcome: str) -> None:
    story.tests_pass_until_the_end()
    assert story.merged() == (*of_those("M", outcome), *of_those("T", outcome))
    assert story.picture() == "main"


@pytest.mark.parametrize(("begin", "verdicts", "order", "outcome"), LANDING_AT_ONCE, ids=names(landing_last=False))
def test_results_in_any_order_when_landings_are_performed_at_once(
    begin: Callable[[], Story], verdicts: str, order: Numbers, outcome: str
):
    story = begin()
    story.submit(*sorted(order))
    hear(story, verdicts, order)
    check_outcome(story, outcome)
    check_that_the_rest_merges(story, outcome)


@pytest.mark.parametrize(("begin", "verdicts", "order", "outcome"), LANDING_LAST, ids=names(landing_last=True))
def test_results_in_any_order_when_landings_are_performed_at_the_end(
    begin: Callable[[], Story], verdicts: str, order: Numbers, outcome: str
):
    story = begin()
    story.withhold_landings()
    story.submit(*sorted(order))
    hear(story, verdicts, order)
    story.stop_withholding()
    check_outcome(story, outcome)
    check_that_the_rest_merges(story, outcome)
