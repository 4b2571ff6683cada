"""External changes in every phase of a submission: push, close, draft, retarget, manual merge, moved target branch."""

from collections.abc import Callable

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PullRequestNumber
from tests.support.story import Story

# Every phase that an admitted pull request can be in; 7 is the pull request that changes.


def waiting_for_a_slot() -> Story:
    story = Story(concurrency=1)
    story.submit(1, 7)
    return story


def waiting_for_a_batch() -> Story:
    story = Story(batch=4)
    story.submit(7)
    return story


def held_for_a_conflict() -> Story:
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(7, {"shared": "seven"})
    story.submit(1, 7)
    return story


def being_built() -> Story:
    story = Story()
    story.withhold(t.BuildRun)
    story.submit(7)
    return story


def under_test() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    return story


def under_test_in_a_batch() -> Story:
    story = Story(batch=3)
    story.submit(1, 7, 8)
    return story


def failed_and_waiting() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    story.tests_fail(7)
    return story


def waiting_for_the_base() -> Story:
    story = Story.on_an_untested_base()
    story.submit(7, 8)
    story.tests_fail(7)
    return story


def held_for_a_broken_base() -> Story:
    story = waiting_for_the_base()
    story.tests_fail()
    return story


def passed_behind_another() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    story.tests_pass(7)
    return story


def about_to_land() -> Story:
    story = Story()
    story.withhold(t.ReadPullRequests)
    story.submit(7, 8)
    story.tests_pass(7)
    return story


def member_of_a_bisection() -> Story:
    story = Story(batch=3)
    story.submit(1, 7, 8)
    story.tests_fail(1, 7, 8)
    return story


def suspect_of_a_bisection() -> Story:
    story = Story(batch=2)
    story.submit(1, 7, 8, 9)
    story.tests_fail(1, 7)
    story.tests_pass(1)
    return story


PHASES = [
    waiting_for_a_slot,
    waiting_for_a_batch,
    held_for_a_conflict,
    being_built,
    under_test,
    under_test_in_a_batch,
    failed_and_waiting,
    waiting_for_the_base,
    held_for_a_broken_base,
    passed_behind_another,
    about_to_land,
    member_of_a_bisection,
    suspect_of_a_bisection,
]


def phase_name(value: object) -> str | None:
    return getattr(value, "__name__", None)


in_every_phase = pytest.mark.parametrize("phase", PHASES, ids=phase_name)
in_every_phase_without_conflict = pytest.mark.parametrize(
    "phase", [phase for phase in PHASES if phase is not held_for_a_conflict], ids=phase_name
)


def check_that_the_others_merge(story: Story) -> None:
    """Whatever happened to 7, all others are tested and merge when all tests pass."""
    story.stop_withholding()
    story.pass_minutes(5)
    story.tests_pass_until_the_end()
    others = [number for number in (1, 8, 9) if number in story.world.host.pull_requests]
    assert sorted(set(story.merged_prs()) - {7}) == others
    assert story.queue_text() == "main"


def change_base(story: Story, number: int) -> None:
    story.retarget(number, "release")


CHANGES: list[tuple[Callable[[Story, int], object], str]] = [
    (Story.push, "pr_pushed"),
    (Story.close, "pr_closed"),
    (Story.draft, "pr_converted_to_draft"),
    (change_base, "pr_base_changed"),
    (Story.cancel, "cancelled_by_user"),
]


@in_every_phase
@pytest.mark.parametrize(("change", "reason"), CHANGES, ids=[reason for _, reason in CHANGES])
def test_a_changed_pr_is_cancelled_with_that_reason_and_the_others_continue(
    phase: Callable[[], Story], change: Callable[[Story, int], object], reason: str
):
    story = phase()
    change(story, 7)
    assert (story.state(7), story.reason(7)) == ("cancelled", reason)
    check_that_the_others_merge(story)
    assert 7 not in story.merged_prs()


@in_every_phase_without_conflict
def test_a_manually_merged_pr_is_merged_and_the_others_continue(phase: Callable[[], Story]):
    story = phase()
    story.merge_by_hand(7)
    assert (story.state(7), story.reason(7)) == ("merged", "merged_manually")
    check_that_the_others_merge(story)


@in_every_phase_without_conflict
def test_a_foreign_push_blames_no_pr_and_all_prs_still_merge(phase: Callable[[], Story]):
    story = phase()
    story.external_push()
    story.stop_withholding()
    assert story.state(7) not in {"failed", "cancelled"}
    check_that_the_others_merge(story)
    assert story.state(7) == "merged"
    assert "elsewhere" in story.target_files()


def test_when_a_held_pr_is_merged_manually_the_pr_it_conflicts_with_fails():
    story = held_for_a_conflict()
    story.merge_by_hand(7)
    assert (story.state(7), story.reason(7)) == ("merged", "merged_manually")
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")


@in_every_phase
def test_a_pause_and_a_resume_change_nothing_that_was_decided(phase: Callable[[], Story]):
    story = phase()
    before = story.queue_text()
    story.pause()
    assert story.queue_text() == before
    story.resume()
    assert story.queue_text() == before


def test_prs_behind_a_pushed_pr_are_tested_again_without_it():
    story = under_test()
    story.push(7)
    assert story.queue_text() == "main ← 1… ← 8…"
    assert story.runs() == ((1,), (1, 8))


def test_a_pushed_pr_can_be_submitted_again_with_its_new_head():
    story = under_test()
    story.push(7)
    story.submit(7)
    assert story.queue_text() == "main ← 1… ← 8… ← 7…"
    story.tests_pass_until_the_end()
    assert story.target_files()["file7"] == "pr7 again"


def test_submitting_again_after_an_unreported_push_starts_a_new_submission():
    story = under_test()
    first = story.submission(7).id
    story.push_without_event(7)
    story.submit(7)
    assert story.submission(7).id != first
    assert "pr_pushed" in story.reasons(7)
    assert story.queue_text() == "main ← 1… ← 8… ← 7…"


def test_a_dirty_signal_without_a_change_changes_nothing():
    story = under_test()
    runs = story.run_of(1).id, story.run_of(7).id, story.run_of(8).id
    story.mark_dirty(7)
    assert (story.run_of(1).id, story.run_of(7).id, story.run_of(8).id) == runs


def test_a_pr_that_was_merged_into_another_branch_is_closed():
    story = under_test()
    story.change_without_event(7, is_open=False, merged_into="release")
    story.mark_dirty(7)
    assert (story.state(7), story.reason(7)) == ("cancelled", "pr_closed")


# The target branch.


def test_a_foreign_push_repeats_every_run_and_blames_no_pr():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.external_push()
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.reasons(2)[-2:] == ("target_branch_moved", "test_run_started")
    assert story.run_of(1).base == story.tip()


def test_a_foreign_push_invalidates_passed_runs():
    story = passed_behind_another()
    story.external_push()
    assert story.state_history(7)[-3:] == ("tests_passed", "pending", "testing")


def test_a_read_of_an_unmoved_target_branch_changes_nothing():
    story = Story()
    story.submit(1)
    run = story.run_of(1).id
    story.repository_requires("unit")
    assert story.run_of(1).id == run


def test_a_pr_whose_head_is_contained_in_a_foreign_push_is_merged():
    story = Story(concurrency=1)
    story.submit(1, 2)
    head = story.submission(2).pull_request.head
    files = story.world.repository.merge_files(story.tip(), head)
    story.world.repository.refs["main"] = story.world.repository.commit((story.tip(), head), files, "by hand")
    story.external_push({"more": "of it"})
    story.tests_pass_until_the_end()
    assert (story.state(2), story.reason(2)) == ("merged", "merged_manually")
    assert story.state(1) == "merged"


def test_a_pr_without_changes_fails():
    story = Story()
    story.open(1, {"README": "hello"})
    story.submit(1)
    assert (story.state(1), story.reason(1)) == ("failed", "nothing_to_merge")


def test_a_pr_whose_change_was_pushed_by_others_has_nothing_to_merge():
    story = Story()
    story.open(1, {"fix": "it"})
    story.submit(1, 2)
    story.external_push({"fix": "it"})
    assert (story.state(1), story.reason(1)) == ("failed", "nothing_to_merge")
    assert story.queue_text() == "main ← 2…"


def test_all_prs_wait_while_the_target_branch_is_deleted():
    story = Story()
    story.submit(1)
    tip = story.tip()
    story.delete_target_branch()
    assert (story.state(1), story.wait_reason(1)) == ("pending", "target_branch_missing")
    story.rewind(tip)
    assert story.state(1) == "testing"


# A rewound target branch.


def rewound_after(number: int) -> Story:
    story = Story()
    clean = story.tip()
    story.submit(number)
    story.tests_pass(number)
    story.open_from(story.tip(), 9)
    story.rewind(clean)
    return story


def test_removed_commits_are_remembered_through_later_landings():
    story = rewound_after(1)
    story.submit(2)
    story.tests_pass(2)
    story.submit(9)
    assert (story.state(9), story.reason(9)) == ("failed", "contains_removed_commit")


def test_a_removed_pr_fails_when_it_is_submitted_again():
    story = rewound_after(1)
    story.change_without_event(1, is_open=True, merged_into=None)
    story.submit(1)
    assert (story.state(1), story.reason(1)) == ("failed", "contains_removed_commit")


def test_a_rewind_repeats_the_runs_and_fails_only_prs_that_contain_removed_commits():
    story = Story()
    clean = story.tip()
    story.submit(1)
    story.tests_pass(1)
    story.open_from(story.tip(), 2)
    story.open_from(clean, 3)
    story.submit(2, 3)
    story.rewind(clean)
    assert (story.state(2), story.reason(2)) == ("failed", "contains_removed_commit")
    assert story.queue_text() == "main ← 3…"


def test_commits_that_were_put_back_can_merge_again():
    story = Story()
    clean = story.tip()
    story.submit(1)
    story.tests_pass(1)
    taken = story.tip()
    story.rewind(clean)
    story.rewind(taken)
    story.open_from(taken, 2)
    story.submit(2)
    story.tests_pass(2)
    assert story.state(2) == "merged"


def test_a_stale_read_of_the_target_branch_does_not_move_it_back():
    story = Story(concurrency=1)
    story.submit(1)
    queue = story.queue
    old = story.world.host.perform_task(t.ReadTargetBranch(known_tip=queue.target_branch.tip), queue.counters.revision)
    story.tests_pass(1)
    merged = story.queue.target_branch.tip
    story.world.apply(old)
    assert story.queue.target_branch.tip == merged
    assert story.count_pending(t.ReadTargetBranch) == 1


def test_a_stale_read_of_a_pull_request_does_not_cancel_its_new_submission():
    story = Story(concurrency=1)
    story.submit(1)
    old = e.PullRequestObserved(
        pull_request=story.world.host.read_pull_request(PullRequestNumber(1)),
        observed_at_revision=story.queue.counters.revision,
    )
    story.push(1)
    story.submit(1)
    story.world.apply(old)
    assert story.state(1) == "testing"
    assert story.count_pending(t.ReadPullRequest) == 1
