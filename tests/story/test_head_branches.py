"""Squash and rebase move head branches to the merged commits; pull requests whose head branch cannot be moved."""

from typing import Unpack

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.domain.runs import HeadMove
from mergeyard.engine.tasks import pending_tasks
from tests.support.story import Story, StorySettings

UNMOVABLE = [
    access for access in HeadBranchAccess if access not in (HeadBranchAccess.MOVABLE, HeadBranchAccess.UNKNOWN)
]


def squash_story(*numbers: int, **settings: Unpack[StorySettings]) -> Story:
    story = Story(**StorySettings(merge_method=MergeMethod.SQUASH) | settings)
    for number in numbers:
        story.open(number)
        story.change_without_event(number, head_branch=f"topic-{number}", is_merged_by_head=True)
    return story


def stop_at_land(story: Story, *numbers: int) -> t.Land:
    """All tests pass, and the landing is intended but not performed."""
    story.withhold(t.Land)
    story.submit(*numbers)
    story.all_tests_pass()
    (task,) = (task for task in pending_tasks(story.queue) if isinstance(task, t.Land))
    return task


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
def test_a_landing_moves_every_head_branch_from_the_tested_head_to_its_commit(method: MergeMethod):
    story = squash_story(1, 2, merge_method=method, batch=2)
    story.change_without_event(2, head_repo="ada/app", fork=True, guarded_paths=())
    task = stop_at_land(story, 1, 2)
    (first, second), steps = task.members, task.steps
    assert task.head_moves == (
        HeadMove(first.number, "topic-1", first.head, steps[0].commit),
        HeadMove(second.number, "topic-2", second.head, steps[1].commit, "ada/app"),
    )


@pytest.mark.parametrize(
    "settings",
    [
        StorySettings(merge_method=MergeMethod.MERGE_COMMIT),
        StorySettings(landing=LandingMethod.PROVIDER_MERGE),
        StorySettings(move_head_branches=False, head_branch_fallback=HeadBranchFallback.CLOSE),
    ],
)
def test_other_landings_move_no_head_branch(settings: StorySettings):
    assert stop_at_land(squash_story(1, **settings), 1).head_moves == ()


@pytest.mark.parametrize("access", UNMOVABLE)
def test_the_git_host_merges_a_pr_whose_head_branch_cannot_be_moved(access: HeadBranchAccess):
    story = squash_story(1)
    story.change_without_event(1, head_branch_access=access)
    task = stop_at_land(story, 1)
    assert (task.landing_method, task.head_moves) == (LandingMethod.PROVIDER_MERGE, ())
    story.stop_withholding()
    assert story.reason(1) == "merged_by_queue"


@pytest.mark.parametrize(
    ("found", "landing_method"),
    [
        (HeadBranchAccess.MOVABLE, LandingMethod.TESTED_COMMIT),
        (HeadBranchAccess.PROTECTED, LandingMethod.PROVIDER_MERGE),
    ],
)
def test_a_head_branch_that_was_not_read_yet_counts_as_movable_until_the_landing(
    found: HeadBranchAccess, landing_method: LandingMethod
):
    story = squash_story(1)
    story.change_without_event(1, head_branch_access=HeadBranchAccess.UNKNOWN)
    story.submit(1)
    assert story.run_of(1).landing_method is LandingMethod.TESTED_COMMIT
    story.change_without_event(1, head_branch_access=found)
    story.withhold(t.Land)
    story.all_tests_pass()
    (task,) = (task for task in pending_tasks(story.queue) if isinstance(task, t.Land))
    assert task.landing_method is landing_method


def test_the_setting_alone_leaves_the_merge_to_the_git_host():
    story = squash_story(1, move_head_branches=False)
    assert stop_at_land(story, 1).landing_method is LandingMethod.PROVIDER_MERGE


def test_a_pr_that_the_git_host_has_to_merge_is_in_no_batch():
    story = squash_story(1, 2, 3, batch=3)
    story.change_without_event(2, head_branch_access=HeadBranchAccess.IN_FORK)
    story.submit(1, 2, 3)
    assert story.batches()[:2] == ((1,), (2,))


def test_a_run_behind_it_merges_in_the_same_way_and_is_not_tested_again():
    story = squash_story(1, 2)
    story.change_without_event(1, head_branch_access=HeadBranchAccess.IN_FORK)
    story.submit(1, 2)
    assert [story.run_of(number).landing_method for number in (1, 2)] == [LandingMethod.PROVIDER_MERGE] * 2
    story.all_tests_pass()
    assert story.states(1, 2) == ("merged", "merged")
    assert story.state_history(2).count("testing") == 1


def test_with_the_other_fallback_the_tested_commit_lands_and_the_other_head_branches_move():
    story = squash_story(1, 2, batch=2, head_branch_fallback=HeadBranchFallback.CLOSE)
    story.change_without_event(1, head_branch_access=HeadBranchAccess.PROTECTED)
    task = stop_at_land(story, 1, 2)
    assert task.landing_method is LandingMethod.TESTED_COMMIT
    assert [move.branch for move in task.head_moves] == ["topic-2"]


def test_a_host_that_is_told_about_merges_needs_no_fallback():
    story = squash_story(1)
    story.change_without_event(1, is_merged_by_head=False, head_branch_access=HeadBranchAccess.GONE)
    task = stop_at_land(story, 1)
    assert (task.landing_method, task.head_moves) == (LandingMethod.TESTED_COMMIT, ())


def test_a_head_branch_that_is_protected_during_the_test_is_not_moved():
    story = squash_story(1)
    story.submit(1)
    assert story.run_of(1).landing_method is LandingMethod.TESTED_COMMIT
    story.change_without_event(1, head_branch_access=HeadBranchAccess.PROTECTED)
    story.withhold(t.Land)
    story.all_tests_pass()
    (task,) = (task for task in pending_tasks(story.queue) if isinstance(task, t.Land))
    assert task.landing_method is story.queue.runs[task.run].landing_method is LandingMethod.PROVIDER_MERGE


# Our own move is not a push of the author.


def miss_landing_after_the_move(story: Story) -> t.Land:
    """The head branch is moved first, then the target branch cannot be moved."""
    task = stop_at_land(story, 1)
    story.change_without_event(1, head=task.head_moves[0].commit)
    story.withhold(t.Land, t.ReadPullRequests, t.ReadTargetBranch)
    story.world.apply(e.LandingMissed(landing=task.landing), e.PullRequestDirty(number=task.members[0].number))
    story.perform_pending_tasks()
    return task


def test_our_own_move_of_a_head_is_not_a_push():
    story = squash_story(1)
    task = miss_landing_after_the_move(story)
    assert story.state(1) == "tests_passed"
    assert story.queue.submissions[task.members[0].submission_id].pull_request.head == task.members[0].head
    assert story.count_pending(t.ReadPullRequest) == 0


def test_an_earlier_move_of_ours_that_the_host_shows_late_is_not_a_push():
    story = squash_story(1)
    first = miss_landing_after_the_move(story)
    story.change_without_event(1, head=first.members[0].head)
    story.external_push_without_event()
    story.stop_withholding()
    story.withhold(t.Land)
    story.all_tests_pass()
    (second,) = (task for task in pending_tasks(story.queue) if isinstance(task, t.Land))
    assert second.head_moves[0].commit != first.head_moves[0].commit
    story.change_without_event(1, head=first.head_moves[0].commit)
    story.world.apply(e.LandingMissed(landing=second.landing), e.PullRequestDirty(number=first.members[0].number))
    story.withhold(t.Land, t.ReadPullRequests, t.ReadTargetBranch)
    story.perform_pending_tasks()
    assert story.state(1) == "tests_passed"


def test_a_push_of_the_author_after_our_move_is_a_push():
    story = squash_story(1)
    miss_landing_after_the_move(story)
    story.push(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")


def test_a_head_that_stays_moved_for_long_without_a_merge_is_no_push():
    story = squash_story(1)
    miss_landing_after_the_move(story)
    story.pass_minutes(2)
    story.mark_dirty(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "head_not_moved_back")


def test_a_pr_that_is_not_admitted_keeps_its_head_after_our_move():
    story = squash_story(1)
    task = miss_landing_after_the_move(story)
    story.change_without_event(1, head=task.members[0].head)
    story.mark_dirty(1)
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_a_landing_waits_until_the_host_shows_the_head_that_was_moved_back():
    story = squash_story(1)
    task = miss_landing_after_the_move(story)
    story.withhold(t.Land)
    for _ in range(3):
        story.perform_pending_tasks()
    assert (story.count_pending(t.ReadPullRequests), story.count_pending(t.Land)) == (1, 0)
    story.change_without_event(1, head=task.members[0].head)
    story.stop_withholding()
    assert story.state(1) == "merged"


@pytest.mark.parametrize("outage_minutes", [0, 30])
def test_our_own_move_is_no_push_however_long_the_landing_took(outage_minutes: int):
    story = squash_story(1)
    task = stop_at_land(story, 1)
    story.pass_minutes(outage_minutes)
    story.change_without_event(1, head=task.head_moves[0].commit)
    story.withhold(t.Land, t.ReadPullRequests, t.ReadTargetBranch)
    story.world.apply(e.LandingMissed(landing=task.landing), e.PullRequestDirty(number=task.members[0].number))
    story.perform_pending_tasks()
    assert story.state(1) == "tests_passed"


def test_after_a_refused_landing_our_own_move_is_no_push():
    story = squash_story(1)
    task = stop_at_land(story, 1)
    story.change_without_event(1, head=task.head_moves[0].commit)
    story.world.apply(
        e.LandingRefused(landing=task.landing, detail="rules"), e.PullRequestDirty(number=task.members[0].number)
    )
    story.perform_pending_tasks()
    assert (story.queue_state(), story.state(1)) == ("PAUSED", "tests_passed")


def test_the_git_host_merges_a_pr_whose_head_branch_it_refused_to_move_until_there_is_a_new_head():
    story = squash_story(1)
    task = stop_at_land(story, 1)
    story.world.apply(
        e.LandingMissed(landing=task.landing, test_branch_moved=True, refused_heads=(task.members[0].number,))
    )
    story.perform_pending_tasks()
    assert story.run_of(1).landing_method is LandingMethod.PROVIDER_MERGE
    story.push(1)
    story.submit(1)
    assert story.run_of(1).landing_method is LandingMethod.TESTED_COMMIT


def test_a_branch_of_two_prs_is_not_moved():
    story = squash_story(1, 2, 3, batch=3)
    for number in (1, 2):
        story.change_without_event(number, head_branch="shared", is_merged_by_head=False)
    assert [move.branch for move in stop_at_land(story, 1, 2, 3).head_moves] == ["topic-3"]


def test_a_run_keeps_its_merge_method_when_the_setting_changes():
    story = squash_story(1)
    story.submit(1)
    story.settings(merge_method=MergeMethod.MERGE_COMMIT)
    story.change_without_event(1, head_branch_access=HeadBranchAccess.PROTECTED)
    story.withhold(t.Land)
    story.all_tests_pass()
    (task,) = (task for task in pending_tasks(story.queue) if isinstance(task, t.Land))
    assert task.landing_method is LandingMethod.PROVIDER_MERGE
