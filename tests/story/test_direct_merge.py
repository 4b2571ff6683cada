"""Direct merges: the run of a head on the tip takes the result of that head's checks, and lands like any run."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, Mode
from mergeyard.domain.states import CheckState
from tests.support.story import Story


def direct_merge_story() -> Story:
    story = Story(direct_merge_mode=DirectMergeMode.ALWAYS)
    story.open(1)
    story.checks_pass_on_head(1)
    return story


def test_a_head_on_the_tip_with_all_statuses_passed_merges_without_new_checks():
    story = direct_merge_story()
    story.submit(1)
    assert (story.state(1), story.reason(1)) == ("merged", "merged_directly")
    assert story.state_history(1) == ("not_ready", "pending", "tests_passed", "merged")
    assert story.target_files()["file1"] == "pr1"
    assert story.landings() == ((1,),)


def test_direct_merge_is_off_by_default():
    story = Story()
    story.open(1)
    story.checks_pass_on_head(1)
    story.submit(1)
    assert story.state(1) == "testing"


def test_a_head_behind_the_tip_is_tested():
    story = direct_merge_story()
    story.external_push()
    story.submit(1)
    assert story.state(1) == "testing"


def test_a_head_without_all_required_statuses_is_tested():
    story = direct_merge_story()
    story.settings(required_statuses=("unit", "lint"))
    story.submit(1)
    assert story.state(1) == "testing"


def test_a_pr_behind_another_is_tested():
    story = direct_merge_story()
    story.submit(2)
    story.submit(1)
    assert story.queue_text() == "main ← 2… ← 1…"


def test_another_lane_under_test_does_not_matter_and_is_not_disturbed():
    story = Story(mode=Mode.PARALLEL, direct_merge_mode=DirectMergeMode.ALWAYS)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.open(1)
    story.checks_pass_on_head(1)
    story.submit(2)
    other = story.run_of(2).id
    story.submit(1)
    assert story.merged_prs() == (1,)
    assert story.run_of(2).id == other
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)


def test_two_ready_heads_on_the_same_tip_merge_one_directly_and_one_tested():
    story = direct_merge_story()
    story.open(2)
    story.checks_pass_on_head(2)
    story.submit(1, 2)
    assert story.merged_prs() == (1,)
    assert story.state(2) == "testing"


def test_a_paused_queue_merges_nothing_directly():
    story = direct_merge_story()
    story.pause()
    story.submit(1)
    assert story.state(1) == "not_ready"
    story.resume()
    assert story.state(1) == "merged"


def test_a_target_that_moves_before_the_push_sends_it_to_be_tested():
    story = direct_merge_story()
    story.withhold(t.Land)
    story.submit(1)
    story.external_push_without_event()
    foreign = story.tip()
    story.stop_withholding()
    assert story.tip() == foreign
    assert story.state(1) == "testing"


def test_a_cancel_during_the_push_is_refused():
    story = direct_merge_story()
    story.withhold(t.Land)
    story.submit(1)
    assert story.cancel(1) == "merge_in_progress"


def test_a_push_found_just_before_landing_cancels_it():
    story = direct_merge_story()
    story.withhold(t.ReadPullRequests)
    story.submit(1)
    story.push_without_event(1)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")


def test_a_restarted_direct_merge_is_tested():
    story = direct_merge_story()
    story.withhold(t.ReadPullRequests)
    story.submit(1)
    story.restart(1)
    story.stop_withholding()
    assert story.state(1) == "testing"


def test_a_direct_merge_leaves_no_duration_for_estimates():
    story = direct_merge_story()
    story.submit(1)
    assert story.queue.durations == ()


def test_a_direct_merge_does_not_make_its_tip_a_passed_base_for_statuses_it_did_not_require():
    story = Story.on_an_untested_base(direct_merge_mode=DirectMergeMode.ALWAYS)
    story.open(1)
    story.checks_pass_on_head(1)
    story.withhold(t.Land)
    story.submit(1)
    story.settings(required_statuses=("unit", "lint"))
    story.stop_withholding()
    story.submit(2)
    story.check("unit", CheckState.PASSED, 2)
    story.check("lint", CheckState.FAILED, 2)
    assert story.state(2) == "pending_failure"
    assert story.base_runs() == 1
