"""A change of mode while tests run: nothing starts, passed PRs merge, the rest is tested again in the new mode."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story


def test_with_nothing_under_test_the_switch_is_immediate():
    story = Story()
    assert story.settings(mode=Mode.PARALLEL) is None
    assert story.queue_state() == "RUNNING"
    story.submit(1)
    assert story.wait_reason(1) == "missing_impacted_targets"


def switching_with_three() -> Story:
    """1 and 2 are under test, 3 waits."""
    story = Story(concurrency=2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2, 3)
    story.settings(mode=Mode.PARALLEL)
    return story


def test_while_tests_run_the_queue_switches_and_no_pr_is_admitted_or_started():
    story = switching_with_three()
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.queue_text() == "main ← 1… ← 2…"
    story.impacts(4, "x")
    story.submit(4)
    assert (story.state(4), story.wait_reason(4)) == ("not_ready", "switching_modes")
    assert (story.state(3), story.wait_reason(3)) == ("pending", "switching_modes")


def test_passed_prs_merge_and_then_the_switch_ends():
    story = switching_with_three()
    story.tests_pass(1)
    assert story.merged_prs() == (1,)
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.runs() == ((1, 2),)
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)
    assert story.queue_state() == "RUNNING"
    assert story.queue_text() == "main ← 3…"


def test_prs_that_cannot_merge_go_back_and_are_tested_again_in_the_new_mode():
    story = switching_with_three()
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.queue_state() == "RUNNING"
    assert story.queue_text() == "main ← 2… ∥ 2 ← 3…"


def test_a_pr_without_targets_counts_as_all_after_the_switch():
    story = switching_with_three()
    story.tests_pass(1)
    story.tests_pass(2)
    story.impacts(4, "z")
    story.submit(4)
    assert story.queue_text() == "main ← 3… ∥ 3 ← 4…"


def test_a_failed_pr_on_an_untested_base_goes_back_and_is_tested_again_in_the_new_mode():
    story = Story.on_an_untested_base()
    story.impacts(1, "x")
    story.submit(1)
    story.settings(mode=Mode.PARALLEL)
    story.tests_fail(1)
    assert story.queue_state() == "RUNNING"
    assert story.reasons(1)[-2:] == ("mode_switched", "test_run_started")


def test_a_bisection_ends_with_the_switch_and_its_members_are_tested_again():
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
    assert story.merged_prs() == ()
    assert "mode_switched" in story.reasons(2)
    assert story.states(1, 2, 3) == ("testing", "testing", "testing")


def test_another_mode_is_refused_while_modes_switch_but_other_settings_are_not():
    story = switching_with_three()
    assert story.settings(mode=Mode.SINGLE) == "mode_switch_in_progress"
    assert story.settings(concurrency=7) is None
    assert story.queue.config.mode is Mode.PARALLEL
    assert story.queue.config.concurrency == 7


def test_a_landing_in_progress_is_finished_before_the_switch_ends():
    story = Story()
    story.withhold(t.Land)
    story.submit(1)
    story.tests_pass(1)
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.stop_withholding()
    assert story.merged_prs() == (1,)
    assert story.queue_state() == "RUNNING"


def test_paused_takes_precedence_over_switching():
    story = switching_with_three()
    story.pause()
    assert story.queue_state() == "PAUSED"
    story.resume()
    assert story.queue_state() == "SWITCHING_MODES"


def test_in_a_paused_queue_nothing_merges_and_all_prs_go_back_when_the_runs_end():
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
    assert story.merged_prs() == ()
    story.resume()
    assert story.queue_state() == "RUNNING"
    assert story.queue_text() == "main ← 1… ∥ main ← 2…"


def test_prs_that_passed_while_paused_merge_when_resumed_during_a_switch():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.pause()
    story.settings(mode=Mode.PARALLEL)
    story.tests_pass(1)
    story.resume()
    assert story.queue_state() == "SWITCHING_MODES"
    assert story.merged_prs() == (1,)


def test_a_draining_queue_continues_draining_after_the_switch():
    story = Story()
    story.submit(1)
    story.drain()
    story.settings(mode=Mode.PARALLEL)
    assert story.queue_state() == "SWITCHING_MODES"
    story.tests_pass(1)
    assert story.queue_state() == "DRAINING"


def test_from_parallel_to_single_all_prs_are_in_one_lane_again():
    story = Story(mode=Mode.PARALLEL, concurrency=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "z")
    story.submit(1, 2, 3)
    story.settings(mode=Mode.SINGLE, concurrency=5)
    story.tests_pass(1)
    assert story.merged_prs() == (1,)
    assert story.queue_text() == "main ← 2… ← 3…"
    assert story.runs() == ((2,), (2, 3))


def test_from_parallel_to_single_a_pr_without_targets_is_admitted():
    story = Story(mode=Mode.PARALLEL)
    story.submit(1)
    assert story.wait_reason(1) == "missing_impacted_targets"
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
