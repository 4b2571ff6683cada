"""Landing by the provider's own merge call: one by one, begun is finished, and a refusal keeps what came before."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod
from tests.support.story import Story


def by_the_provider(*numbers: int) -> Story:
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.submit(*numbers)
    return story


def test_the_provider_merges_one_by_one_in_order():
    story = by_the_provider(1, 2, 3)
    story.all_tests_pass()
    assert story.landings() == ((1,), (2,), (3,))
    assert story.states(1, 2, 3) == ("merged", "merged", "merged")


def test_runs_behind_stay_good_though_the_provider_makes_commits_of_its_own():
    story = by_the_provider(1, 2)
    behind = story.run_of(2).id
    story.tests_pass(1)
    assert story.run_of(2).id == behind
    story.tests_pass(2)
    assert story.merged() == (1, 2)
    assert story.past(2).count("testing") == 1


def test_a_refusal_keeps_those_before_it_fails_the_one_and_tests_the_rest_again():
    story = by_the_provider(1, 2, 3)
    story.refuse_to_merge(2)
    story.all_tests_pass()
    assert story.merged() == (1,)
    assert (story.state(2), story.reason(2), story.words(2)) == ("failed", "merge_refused", "not allowed")
    assert story.picture() == "main ← 3…"
    assert story.reasons(3)[-2:] == ("prerequisite_removed", "test_run_started")
    assert story.queue_state() == "RUNNING"


def test_a_refusal_in_the_middle_of_a_batch_tests_its_rest_again_in_place():
    story = Story(landing=LandingMethod.PROVIDER_MERGE, batch=3)
    story.submit(1, 2, 3)
    story.submit(4, 5, 6)
    story.refuse_to_merge(2)
    story.tests_pass(1, 2, 3)
    assert story.states(1, 2) == ("merged", "failed")
    assert story.picture() == "main ← 3… ← 4+5+6…"


def test_a_refusal_of_the_first_keeps_nobody():
    story = by_the_provider(1, 2)
    story.refuse_to_merge(1)
    story.all_tests_pass()
    assert story.states(1, 2) == ("failed", "testing")
    assert story.merged() == ()


def test_a_red_one_behind_a_merge_by_the_provider_is_judged_upon_it():
    story = by_the_provider(1, 2)
    story.tests_fail(2)
    story.tests_pass(1)
    assert (story.state(2), story.failed_upon(2)) == ("failed", (1,))


def test_an_answer_that_is_lost_half_way_is_finished_and_nothing_merges_twice():
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.withhold(t.Land)
    story.submit(1, 2)
    story.all_tests_pass()
    story.refuse_to_merge(2)
    story.perform_and_lose_the_answer(t.Land)
    story.world.host.refusing.clear()
    story.stop_withholding()
    assert story.merged() == (1, 2)


def test_a_target_that_moves_half_way_keeps_what_merged_and_tests_the_rest_again():
    story = Story(landing=LandingMethod.PROVIDER_MERGE)
    story.withhold(t.Land)
    story.submit(1, 2)
    story.all_tests_pass()
    story.refuse_to_merge(2)
    story.perform_and_lose_the_answer(t.Land)
    story.world.host.refusing.clear()
    story.foreign_push_unheard()
    story.stop_withholding()
    assert story.states(1, 2) == ("merged", "testing")


def test_a_run_keeps_the_way_of_landing_that_it_began_with():
    story = by_the_provider(1, 2)
    story.settings(landing=LandingMethod.TESTED_COMMIT)
    story.all_tests_pass()
    assert story.landings() == ((1,), (2,))
