"""Rebased landings: in parallel mode tested contents are rebased onto a tip that another lane has moved."""

from mergeyard.domain.config import Mode
from tests.support.story import Story


def two_lanes(first: dict[str, str], second: dict[str, str]) -> Story:
    story = Story(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.open(1, first)
    story.open(2, second)
    story.submit(1, 2)
    return story


def test_two_lanes_land_one_after_the_other_without_another_test():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.landings() == ((1,), (2,))
    assert story.target_files() == {"README": "hello", "a": "1", "b": "2"}
    assert story.state_history(2).count("testing") == 1


def test_two_lanes_that_pass_at_the_same_time_land_one_after_the_other():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.all_tests_pass()
    assert sorted(story.merged_prs()) == [1, 2]
    assert len(story.landings()) == 2


def test_lanes_that_change_the_same_path_are_tested_again_on_the_new_tip():
    story = two_lanes({"shared": "same", "a": "1"}, {"shared": "same", "b": "2"})
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.merged_prs() == (1,)
    assert (story.state(2), story.queue_text()) == ("testing", "main ← 2…")
    assert story.reasons(2)[-2:] == ("target_branch_moved", "test_run_started")
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)


def test_a_lane_is_tested_again_after_a_foreign_commit():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.external_push({"c": "3"})
    story.tests_pass(1)
    story.tests_pass(2)
    assert sorted(story.merged_prs()) == [1, 2]
    assert story.state_history(2).count("testing") == 2


def test_a_pr_that_is_pushed_to_while_its_landing_is_rebased_does_not_land():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.tests_pass(1)
    story.push_without_event(2)
    story.tests_pass(2)
    assert (story.state(2), story.reason(2)) == ("cancelled", "pr_pushed")
    assert "b" not in story.target_files()


def test_a_run_across_two_lanes_stays_valid_when_both_land():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.impacts(3, "x", "y")
    story.submit(3)
    across = story.run_of(3).id
    story.tests_pass(2)
    story.tests_pass(1)
    assert story.run_of(3).id == across
    story.tests_pass(3)
    assert story.merged_prs() == (2, 1, 3)
    assert story.state_history(3).count("testing") == 1


def test_a_run_across_two_lanes_lands_all_three_in_one_update_when_all_passed():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.impacts(3, "x", "y")
    story.submit(3)
    story.all_tests_pass()
    assert story.landings() == ((1, 2, 3),)


def test_a_lane_of_several_prs_is_rebased_in_one_update():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.impacts(3, "y")
    story.submit(3)
    story.tests_pass(1)
    story.tests_pass(3)
    story.tests_pass(2)
    assert story.landings() == ((1,), (2, 3))
    assert set(story.target_files()) == {"README", "a", "b", "file3"}


def test_a_failed_pr_fails_although_another_lane_has_landed_meanwhile():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.tests_pass(1)
    story.tests_fail(2)
    assert (story.state(2), story.failed_on(2)) == ("failed", ())


def test_a_run_that_starts_after_a_landing_in_another_lane_has_the_new_tip_as_base():
    story = two_lanes({"a": "1"}, {"b": "2"})
    story.tests_pass(1)
    story.impacts(3, "z")
    story.submit(3)
    assert story.run_of(3).base == story.tip()
