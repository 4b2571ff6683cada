"""Restarting tests: a new run in the same place, while the runs behind continue."""

from mergeyard.domain import tasks as t
from mergeyard.domain.states import CheckState
from tests.support.story import Story


def test_a_restart_gives_a_new_run_in_the_same_place_and_the_runs_behind_go_on():
    story = Story()
    story.submit(1, 2, 3)
    before, behind = story.run_of(2).id, story.run_of(3).id
    assert story.restart(2) is None
    assert story.queue_text() == "main ← 1… ← 2… ← 3…"
    assert story.run_of(2).id != before
    assert story.run_of(3).id == behind
    assert story.reasons(2)[-2:] == ("tests_restarted", "test_run_started")


def test_results_of_the_run_before_the_restart_do_not_count():
    story = Story()
    story.submit(1)
    before = story.run_of(1)
    story.restart(1)
    story.late_result(before, CheckState.FAILED)
    assert story.state(1) == "testing"
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_runs_built_on_the_run_before_the_restart_still_land():
    story = Story()
    story.submit(1, 2)
    story.restart(1)
    story.tests_pass(2)
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)
    assert story.state_history(2).count("testing") == 1


def test_a_failed_pr_that_waits_can_be_restarted():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.restart(2)
    assert story.queue_text() == "main ← 1… ← 2…"
    story.tests_pass(2)
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)


def test_restarting_one_of_a_batch_restarts_the_batch():
    story = Story(batch=2)
    story.submit(1, 2)
    before = story.run_of(1, 2).id
    story.restart(2)
    assert story.run_of(1, 2).id != before
    assert "tests_restarted" in story.reasons(1)


def test_a_restart_resets_the_retry_count():
    story = Story(test_retries=1)
    story.submit(1)
    story.tests_fail(1)
    story.restart(1)
    story.tests_fail(1)
    assert story.state(1) == "testing"
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_a_restart_of_a_waiting_pr_changes_nothing():
    story = Story(concurrency=1)
    story.submit(1, 2)
    assert story.restart(2) is None
    assert (story.state(2), story.reasons(2)) == ("pending", ("submitted", "ready"))


def test_a_restarted_pr_that_had_passed_merges_only_after_its_new_run_passes():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.restart(2) is None
    assert story.queue_text() == "main ← 1… ← 2…"
    story.tests_pass(1)
    assert (story.state(1), story.state(2)) == ("merged", "testing")
    story.tests_pass(2)
    assert story.state(2) == "merged"


def test_a_pr_whose_merge_is_being_pushed_cannot_be_restarted():
    story = Story()
    story.withhold(t.Land)
    story.submit(1)
    story.tests_pass(1)
    assert story.restart(1) == "merge_in_progress"
    assert story.state(1) == "tests_passed"


def test_a_pr_that_was_never_submitted_cannot_be_restarted():
    story = Story()
    assert story.restart(1) == "pr_not_submitted"


def test_a_restart_in_a_paused_queue_waits_for_the_queue():
    story = Story()
    story.submit(1)
    story.pause()
    assert story.restart(1) is None
    assert (story.state(1), story.wait_reason(1), story.runs()) == ("pending", "queue_paused", ())
    story.resume()
    assert story.state(1) == "testing"


def test_a_restart_waits_for_a_slot_after_concurrency_was_lowered():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.settings(concurrency=1)
    story.restart(1)
    assert (story.state(1), story.wait_reason(1)) == ("pending", "waiting_for_slot")
    story.tests_pass(2)
    assert story.state(1) == "testing"


def test_a_restarted_pr_can_fail_after_the_pr_ahead_merged():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(1)
    story.restart(2)
    story.tests_fail(2)
    assert (story.state(2), story.failed_on(2)) == ("failed", (1,))


def test_a_restarted_pr_that_a_run_behind_had_cleared_waits_for_its_own_new_run():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    assert story.state(1) == "tests_passed"
    story.restart(1)
    assert story.state(1) == "testing"
    story.tests_pass(1)
    assert story.state(1) == "tests_passed"
