"""An action's price: the runs that it stops, and the pull requests that are tested again; and how one would merge."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import URGENT, Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.domain.runs import Run
from mergeyard.domain.states import Reason, RunStatus
from mergeyard.domain.timestamps import MINUTE
from mergeyard.engine import merging
from mergeyard.service.previews import BRANCH_PROBLEMS, Action, ActionPreview, MergesBy, explain_merge, preview_action
from tests.support.builders import QueueWorld, a_pull_request, a_run, a_world


def a_busy_world() -> QueueWorld:
    """Three pull requests under test, each for five minutes, and a fourth that waits."""
    world = a_world(prs=4, concurrency=3)
    world.advance_time(5 * MINUTE)
    return world


def preview(world: QueueWorld, number: int, action: Action, priority: int | None = None) -> ActionPreview:
    return preview_action(world.queue, PullRequestNumber(number), action, priority, world.now)


@pytest.mark.parametrize("action", [Action.PRIORITY, Action.SUBMIT])
def test_urgent_names_every_run_that_it_stops_and_the_time_that_is_lost(action: Action):
    price = preview(a_busy_world(), 4, action, URGENT)
    assert [each.numbers for each in price.stopped] == [(1,), (2,), (3,)]
    assert price.elapsed_ms == 15 * MINUTE
    assert price.delayed == (1, 2, 3)


def test_submitting_an_unknown_pull_request_as_urgent_has_the_same_price():
    assert len(preview(a_busy_world(), 9, Action.SUBMIT, URGENT).stopped) == 3


def test_a_restart_stops_only_its_own_run():
    price = preview(a_busy_world(), 2, Action.RESTART)
    assert ([each.numbers for each in price.stopped], price.delayed) == ([(2,)], ())


def test_removing_a_pull_request_stops_the_runs_on_top_of_it():
    price = preview(a_busy_world(), 2, Action.CANCEL)
    assert ([each.numbers for each in price.stopped], price.delayed) == ([(2,), (3,)], (3,))


@pytest.mark.parametrize(("action", "priority"), [(Action.CANCEL, None), (Action.PRIORITY, 10), (Action.SUBMIT, None)])
def test_what_waits_costs_nothing(action: Action, priority: int | None):
    assert preview(a_busy_world(), 4, action, priority) == ActionPreview()


def test_a_preview_changes_nothing():
    world = a_busy_world()
    before = world.queue
    preview(world, 4, Action.PRIORITY, URGENT)
    assert world.queue is before


SQUASH = Config(merge_method=MergeMethod.SQUASH)
HOST_MERGES = "the Git host merges the pull request, and the queue compares the result with the tested commit."


def on_github(access: HeadBranchAccess = HeadBranchAccess.MOVABLE, fork: str = "") -> PullRequest:
    pull_request = replace(a_pull_request(1), head_branch="greet", head_repo=fork)
    return replace(pull_request, is_merged_by_head=True, head_branch_access=access)


def test_the_tested_commit_merges_if_the_head_branch_can_be_moved():
    expected = "The queue pushes the tested commit and moves the head branch greet to it."
    assert explain_merge(SQUASH, on_github()) == (MergesBy.TESTED_COMMIT, expected)
    expected = "The queue pushes the tested commit and moves the head branch greet in bob/app to it."
    assert explain_merge(SQUASH, on_github(fork="bob/app")) == (MergesBy.TESTED_COMMIT, expected)


def test_a_merge_commit_needs_no_move():
    expected = "The queue pushes the tested commit, which contains the commits of the pull request."
    for access in HeadBranchAccess:
        assert explain_merge(Config(), on_github(access)) == (MergesBy.TESTED_COMMIT, expected)


@pytest.mark.parametrize("access", [HeadBranchAccess.NOT_MOVED, HeadBranchAccess.IN_FORK])
def test_a_git_host_that_is_told_needs_no_move(access: HeadBranchAccess):
    told = replace(on_github(access), is_merged_by_head=False)
    expected = "The queue pushes the tested commit and reports the merge to the Git host."
    assert explain_merge(SQUASH, told) == (MergesBy.TESTED_COMMIT, expected)


def test_a_queue_that_merges_at_the_git_host_says_so():
    by_host = replace(SQUASH, landing=LandingMethod.PROVIDER_MERGE)
    expected = f"{HOST_MERGES[0].upper()}{HOST_MERGES[1:]}"
    assert explain_merge(by_host, on_github(HeadBranchAccess.IN_FORK)) == (MergesBy.PROVIDER_MERGE, expected)


def test_a_fork_that_the_queue_cannot_push_to_is_named_with_what_to_do():
    reason = "The head branch is in a fork that the queue cannot push to, so"
    advice = "The author of the pull request can allow edits by maintainers to change this."
    fork = on_github(HeadBranchAccess.IN_FORK)
    assert explain_merge(SQUASH, fork) == (MergesBy.PROVIDER_MERGE, f"{reason} {HOST_MERGES} {advice}")
    closes = "the queue pushes the tested commit and closes the pull request with a link to it."
    config = replace(SQUASH, head_branch_fallback=HeadBranchFallback.CLOSE)
    assert explain_merge(config, fork) == (MergesBy.CLOSE, f"{reason} {closes} {advice}")


def test_every_reason_for_the_fallback_has_its_own_words():
    """Also one that is added later."""
    found = set[str]()
    for access in HeadBranchAccess:
        if merging.fallback_of(SQUASH, on_github(access)) is None:
            continue
        found.add(explain_merge(SQUASH, on_github(access))[1])
        reason, advice = BRANCH_PROBLEMS[access]
        assert explain_merge(SQUASH, on_github(access))[1] == f"{reason}, so {HOST_MERGES} {advice}", access
    assert len(found) == len(BRANCH_PROBLEMS)


@pytest.mark.parametrize("access", HeadBranchAccess)
def test_the_setting_is_named_if_it_is_off(access: HeadBranchAccess):
    config = replace(SQUASH, move_head_branches=False)
    assert explain_merge(config, on_github(access))[1].startswith("The setting moveHeadBranches is off, so ")


def test_a_pull_request_that_is_tested_with_one_that_the_git_host_merges_says_so():
    run = replace(a_run(2, 1), landing_method=LandingMethod.PROVIDER_MERGE)
    expected = f"It is tested together with a pull request that the Git host has to merge, so {HOST_MERGES}"
    assert explain_merge(SQUASH, on_github(), run) == (MergesBy.PROVIDER_MERGE, expected)
    assert explain_merge(SQUASH, on_github(), a_run(2, 1))[0] is MergesBy.TESTED_COMMIT


BY_HOST = LandingMethod.PROVIDER_MERGE
SQUASH_RUN = replace(a_run(1), merge_method=MergeMethod.SQUASH)


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.IN_PROGRESS, RunStatus.SUCCEEDED])
def test_a_run_keeps_its_methods_when_the_settings_change(status: RunStatus):
    run = replace(SQUASH_RUN, status=status)
    moves = (MergesBy.TESTED_COMMIT, "The queue pushes the tested commit and moves the head branch greet to it.")
    for config in (Config(), Config(landing=BY_HOST), replace(SQUASH, landing=BY_HOST)):
        assert explain_merge(config, on_github(), run) == moves
    by_host = replace(run, landing_method=BY_HOST)
    expected = f"Its test run keeps the landing provider_merge, so {HOST_MERGES}"
    for config in (Config(), SQUASH):
        assert explain_merge(config, on_github(), by_host) == (MergesBy.PROVIDER_MERGE, expected)
    closes = replace(SQUASH, head_branch_fallback=HeadBranchFallback.CLOSE)
    assert explain_merge(closes, on_github(HeadBranchAccess.IN_FORK), by_host)[0] is MergesBy.PROVIDER_MERGE
    assert (
        explain_merge(replace(closes, landing=BY_HOST), on_github(HeadBranchAccess.IN_FORK), run)[0] is MergesBy.CLOSE
    )


@pytest.mark.parametrize(
    "run",
    [
        replace(SQUASH_RUN, status=RunStatus.FAILED),
        replace(SQUASH_RUN, status=RunStatus.CANCELLED),
        replace(SQUASH_RUN, restart_requested=True),
        replace(SQUASH_RUN, invalidated=Reason.TARGET_BRANCH_MOVED),
        replace(SQUASH_RUN, stack=(replace(SQUASH_RUN.stack[0], head=Sha("7" * 40)),)),
        replace(a_run(2), merge_method=MergeMethod.SQUASH),
    ],
    ids=["failed", "cancelled", "restarted", "invalidated", "pushed since", "another pull request"],
)
def test_a_run_that_cannot_merge_the_pull_request_does_not_count(run: Run):
    by_host = Config(landing=BY_HOST)
    assert explain_merge(Config(), on_github(), run) == explain_merge(Config(), on_github())
    assert explain_merge(by_host, on_github(), run) == explain_merge(by_host, on_github())


def test_a_head_branch_that_was_not_read_yet_is_not_promised_to_move():
    expected = "The queue pushes the tested commit and moves the head branch greet to it, if the Git host allows it."
    assert explain_merge(SQUASH, on_github(HeadBranchAccess.UNKNOWN)) == (MergesBy.TESTED_COMMIT, expected)
