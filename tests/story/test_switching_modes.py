"""A change of mode while tests run: nothing starts, what passed merges, the rest begins anew in the new mode."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story


def test_with_nothing_under_test_the_switch_is_immediate():
    story = Story()
    assert story.settings(mode=Mode.PARALLEL) is None
    assert story.queue_state() == "RUNNING"
    story.submit(1)
    assert story.waiting(1) == "missing_impacted_targets"


def switching_with_three() -> Story:
    """1 and 2 are under test, 3 waits."""
    story = Story(concurrency=2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2, 3)
    story.settings(mode=Mode.PARALLEL)
    return story


def test_while_tests_run_the_queue_switches_and_nothing_enters_or_starts():
    story = switching_with_three()
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.picture() == "main ← 1… ← 2…"
    story.impacts(4, "x")
    story.submit(4)
    assert (story.state(4), story.waiting(4)) == ("not_ready", "switching_modes")
    assert (story.state(3), story.waiting(3)) == ("pending", "switching_modes")


def test_what_passed_merges_and_then_the_switch_is_over():
    story = switching_with_three()
    story.tests_pass(1)
    assert story.merged() == (1,)
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.runs() == ((1, 2),)
    story.tests_pass(2)
    assert story.merged() == (1, 2)
    assert story.queue_state() == "RUNNING"
    assert story.picture() == "main ← 3…"


def test_whoever_cannot_merge_goes_back_and_is_tested_again_in_the_new_mode():
    story = switching_with_three()
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.queue_state() == "RUNNING"
    assert story.picture() == "main ← 2… ∥ 2 ← 3…"


def test_one_without_targets_counts_as_all_after_the_switch():
    story = switching_with_three()
    story.tests_pass(1)
    story.tests_pass(2)
    story.impacts(4, "z")
    story.submit(4)
    assert story.picture() == "main ← 3… ∥ 3 ← 4…"


def test_a_red_one_behind_goes_back_when_those_ahead_are_gone_without_a_verdict():
    story = Story.on_an_unseen_base()
    story.impacts(1, "x")
    story.submit(1)
    story.settings(mode=Mode.PARALLEL)
    story.tests_fail(1)
    assert story.queue_state() == "RUNNING"
    assert story.reasons(1)[-2:] == ("mode_switched", "test_run_started")


def test_a_search_ends_with_the_switch_and_its_members_are_tested_again():
    story = Story(batch=3)
    for number in (1, 2, 3):
        story.impacts(number, "x")
    story.submit(1, 2, 3)
    story.tests_fail(1, 2, 3)
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.tests_pass(1)
    story.tests_fail(1, 2)
    assert story.queue_state() == "RUNNING"
    assert story.merged() == ()
    assert "mode_switched" in story.reasons(2)
    assert story.states(1, 2, 3) == ("testing", "testing", "testing")


def test_another_mode_is_refused_while_modes_switch_but_other_settings_are_not():
    story = switching_with_three()
    assert story.settings(mode=Mode.SINGLE) == "mode_switch_in_progress"
    assert story.settings(concurrency=7) is None
    assert story.queue.config.mode is Mode.PARALLEL
    assert story.queue.config.concurrency == 7


def test_a_landing_under_way_is_finished_before_the_switch_is_over():
    story = Story()
    story.withhold(t.Land)
    story.submit(1)
    story.tests_pass(1)
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.stop_withholding()
    assert story.merged() == (1,)
    assert story.queue_state() == "RUNNING"


def test_paused_beats_switching():
    story = switching_with_three()
    story.pause()
    assert story.queue_state() == "PAUSED"
    story.resume()
    assert story.queue_state() == "SWITCHING_MODES"


def test_in_a_paused_queue_nothing_merges_and_all_go_back_when_the_runs_are_over():
    story = Story(concurrency=2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.pause()
    story.settings(mode=Mode.PARALLEL)
    story.tests_pass(1)
    assert story.states(1, 2) == ("tests_passed", "testing")
    story.tests_pass(2)
    assert story.queue_state() == "PAUSED"
    assert story.states(1, 2) == ("pending", "pending")
    assert story.reason(1) == "mode_switched"
    assert story.merged() == ()
    story.resume()
    assert story.queue_state() == "RUNNING"
    assert story.picture() == "main ← 1… ∥ main ← 2…"


def test_resumed_in_the_middle_of_a_switch_what_passed_meanwhile_merges():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.pause()
    story.settings(mode=Mode.PARALLEL)
    story.tests_pass(1)
    story.resume()
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.merged() == (1,)


def test_a_draining_queue_drains_on_after_the_switch():
    story = Story()
    story.submit(1)
    story.drain()
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.tests_pass(1)
    assert story.queue_state() == "DRAINING"


def test_from_parallel_to_single_all_stand_in_one_line_again():
    story = Story(mode=Mode.PARALLEL, concurrency=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "z")
    story.submit(1, 2, 3)
    story.settings(mode=Mode.SINGLE, concurrency=5)
    story.tests_pass(1)
    assert story.merged() == (1,)
    assert story.picture() == "main ← 2… ← 3…"
    assert story.runs() == ((2,), (2, 3))


def test_from_parallel_to_single_one_without_targets_is_let_in():
    story = Story(mode=Mode.PARALLEL)
    story.submit(1)
    assert story.waiting(1) == "missing_impacted_targets"
    story.settings(mode=Mode.SINGLE)
    assert story.state(1) == "testing"


def test_a_restart_while_modes_switch_leaves_no_planned_run_behind():
    story = Story(concurrency=2, test_retries=1)
    story.submit(1)
    story.withhold(t.BuildRun)
    story.tests_fail(1)
    story.submit(2)
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.restart(1)
    assert story.queue_state() == "RUNNING"
