"""The duration and progress of a run, compared with the usual duration."""

from msgspec.structs import replace

from mergeyard.domain.states import RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.web.run_progress import RunDuration, RunProgress, measure_duration, measure_progress
from tests.support.builders import QueueWorld, a_plain_queue, a_run, a_world
from tests.support.world.world import START_TIME

USUAL = 10 * MINUTE


def test_a_duration_is_measured_until_now_or_until_the_end_of_the_run():
    now, ended = later(START_TIME, 3 * MINUTE), replace(a_run(1), decided_at=later(START_TIME, MINUTE))
    assert measure_duration(a_run(1), a_plain_queue(), now).elapsed_ms == 3 * MINUTE
    assert measure_duration(ended, a_plain_queue(), now).elapsed_ms == MINUTE


def test_a_duration_names_the_typical_one_to_compare_it_with():
    assert RunDuration(MINUTE, USUAL).typical == "typically 10 min"
    assert RunDuration(MINUTE, None).typical == "no typical duration yet"


def progress_after(world: QueueWorld, minutes: int, usual: int | None = None) -> RunProgress:
    queue = world.queue if usual is None else replace(world.queue, durations=(usual * MINUTE,))
    return measure_progress(queue, world.run_of(1), Instant(world.now + minutes * MINUTE))


def test_without_a_usual_duration_there_is_no_bar():
    progress = progress_after(a_world(prs=1), minutes=3)
    assert (progress.duration, progress.is_overdue) == (RunDuration(3 * MINUTE, None), False)
    assert (progress.duration.elapsed_percent, progress.duration.usual_percent) == (None, None)


def test_the_bar_has_room_after_the_usual_duration():
    progress = progress_after(a_world(prs=1), minutes=4, usual=8)
    assert (progress.duration.elapsed_percent, progress.duration.usual_percent, progress.is_overdue) == (40, 80, False)


def test_a_run_that_takes_longer_fills_the_bar_and_is_overdue():
    progress = progress_after(a_world(prs=1), minutes=16, usual=8)
    assert (progress.duration.elapsed_percent, progress.duration.usual_percent, progress.is_overdue) == (100, 50, True)


def test_a_finished_run_is_never_overdue():
    world = a_world(prs=2)
    run = replace(world.run_of(1), status=RunStatus.SUCCEEDED, decided_at=Instant(world.now + 16 * MINUTE))
    world.queue = replace(world.queue, runs={**world.queue.runs, run.id: run})
    progress = progress_after(world, minutes=90, usual=8)
    assert (progress.duration.elapsed_ms, progress.is_overdue) == (16 * MINUTE, False)


def test_a_run_that_is_being_built_has_no_page_and_no_duration():
    world = a_world()
    world.submit(1)
    progress = progress_after(world, minutes=1)
    assert (progress.has_page, progress.duration.elapsed_ms) == (False, None)


def test_a_second_attempt_is_shown():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    assert progress_after(world, minutes=0).run.attempt == 1
