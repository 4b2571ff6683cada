"""A run as people watch it."""

from msgspec.structs import replace

from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.states import RunStatus
from mergeyard.web.trials import Trial, trial
from tests.support.builders import Yard, a_yard


def watched(yard: Yard, minutes: int, usual: int | None = None) -> Trial:
    queue = yard.queue if usual is None else replace(yard.queue, durations=(usual * MINUTE,))
    return trial(queue, yard.run_of(1), Instant(yard.now + minutes * MINUTE))


def test_without_a_usual_time_there_is_no_bar():
    seen = watched(a_yard(prs=1), minutes=3)
    assert (seen.elapsed, seen.progress, seen.due, seen.overdue) == (3 * MINUTE, None, None, False)


def test_the_bar_has_room_behind_the_usual_time():
    seen = watched(a_yard(prs=1), minutes=4, usual=8)
    assert (seen.progress, seen.due, seen.overdue) == (40, 80, False)


def test_a_run_that_takes_longer_fills_the_bar_and_is_overdue():
    seen = watched(a_yard(prs=1), minutes=16, usual=8)
    assert (seen.progress, seen.due, seen.overdue) == (100, 50, True)


def test_a_run_that_is_over_is_never_overdue():
    yard = a_yard(prs=2)
    run = replace(yard.run_of(1), status=RunStatus.SUCCEEDED, decided_at=Instant(yard.now + 16 * MINUTE))
    yard.queue = replace(yard.queue, runs={**yard.queue.runs, run.id: run})
    seen = watched(yard, minutes=90, usual=8)
    assert (seen.elapsed, seen.overdue) == (16 * MINUTE, False)


def test_a_run_that_is_being_built_has_no_page_and_no_time():
    yard = a_yard()
    yard.submit(1)
    seen = watched(yard, minutes=1)
    assert (seen.shown, seen.elapsed) == (False, None)


def test_a_second_attempt_says_so():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    assert watched(yard, minutes=0).attempt == 1
