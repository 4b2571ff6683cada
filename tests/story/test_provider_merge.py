"""Landing by the provider's merge call: PR by PR; a started landing is finished, a refusal keeps earlier merges."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from tests.support.story import Story


def provider_merge_story(*numbers: int) -> Story:
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.submit(*numbers)
    return story


def test_the_provider_merges_one_by_one_in_order():
    story = provider_merge_story(1, 2, 3)
    story.all_tests_pass()
    assert story.landings() == ((1,), (2,), (3,))
    assert story.states(1, 2, 3) == ("merged", "merged", "merged")


def test_runs_behind_stay_valid_although_the_provider_creates_its_own_commits():
    story = provider_merge_story(1, 2)
    behind = story.run_of(2).id
    story.tests_pass(1)
    assert story.run_of(2).id == behind
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)
    assert story.state_history(2).count("testing") == 1


def test_a_refusal_fails_that_pr_and_tests_the_rest_again():
    story = provider_merge_story(1, 2, 3)
    story.refuse_to_merge(2)
    story.all_tests_pass()
    assert story.merged_prs() == (1,)
    assert (story.state(2), story.reason(2), story.detail(2)) == ("failed", "merge_refused", "not allowed")
    assert story.queue_text() == "main ← 3…"
    assert story.reasons(3)[-2:] == ("prerequisite_removed", "test_run_started")
    assert story.queue_state() == "RUNNING"


def test_a_refusal_in_the_middle_of_a_batch_tests_its_rest_again_in_place():
    story = Story(landing=LandingMethod.PROVIDER_MERGE, batch=3)
    story.submit(1, 2, 3)
    story.submit(4, 5, 6)
    story.refuse_to_merge(2)
    story.tests_pass(1, 2, 3)
    assert story.states(1, 2) == ("merged", "failed")
    assert story.queue_text() == "main ← 3… ← 4+5+6…"


def test_a_refusal_of_the_first_pr_merges_none():
    story = provider_merge_story(1, 2)
    story.refuse_to_merge(1)
    story.all_tests_pass()
    assert story.states(1, 2) == ("failed", "testing")
    assert story.merged_prs() == ()


def test_a_failed_pr_behind_a_provider_merge_fails():
    story = provider_merge_story(1, 2)
    story.tests_fail(2)
    story.tests_pass(1)
    assert (story.state(2), story.failed_on(2)) == ("failed", (1,))


def test_a_provider_merge_with_a_lost_reply_is_finished_and_nothing_merges_twice():
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.withhold(t.Land)
    story.submit(1, 2)
    story.all_tests_pass()
    story.refuse_to_merge(2)
    story.perform_and_lose_result(t.Land)
    story.world.host.refused_numbers.clear()
    story.stop_withholding()
    assert story.merged_prs() == (1, 2)


def test_a_target_branch_that_moves_during_a_provider_merge_makes_the_rest_be_tested_again():
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.withhold(t.Land)
    story.submit(1, 2)
    story.all_tests_pass()
    story.refuse_to_merge(2)
    story.perform_and_lose_result(t.Land)
    story.world.host.refused_numbers.clear()
    story.external_push_without_event()
    story.stop_withholding()
    assert story.states(1, 2) == ("merged", "testing")


def test_a_run_keeps_the_landing_method_that_it_started_with():
    story = provider_merge_story(1, 2)
    story.settings(landing=LandingMethod.TESTED_COMMIT)
    story.all_tests_pass()
    assert story.landings() == ((1,), (2,))
