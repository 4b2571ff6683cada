"""Pull requests are submitted over HTTP, tested, and merged into a real repository."""

from typing import Any

import pytest

from tests.e2e.conftest import StartEnvironment
from tests.support.environment import ServerEnvironment

METHODS = pytest.mark.parametrize(
    "method",
    ["merge_commit", pytest.param("squash", marks=pytest.mark.long), pytest.param("rebase", marks=pytest.mark.long)],
)
PARALLEL: dict[str, Any] = {"mode": "parallel"}


def open_three(env: ServerEnvironment) -> list[int]:
    return [env.open_pr({f"{name}.txt": "1", f"{name}/more": "2"}) for name in "abc"]


def has_all_three(env: ServerEnvironment) -> bool:
    return set(env.origin.files("main")) == {
        "README",
        *(f"{name}{end}" for name in "abc" for end in (".txt", "/more")),
    }


def test_three_queued_prs_merge_as_tested(start_env: StartEnvironment):
    env = start_env()
    numbers = open_three(env)
    env.submit(*numbers)
    env.wait_for("merged", *numbers)
    assert has_all_three(env)
    assert [env.pull_request_meta(number)["state"] for number in numbers] == ["merged"] * 3
    assert env.reasons(numbers[0]) == [
        "submitted", "ready", "test_run_started", "test_run_passed", "merged_by_queue",
    ]  # fmt: skip


@pytest.mark.long
@METHODS
def test_three_passed_prs_land_in_one_update(start_env: StartEnvironment, method: str):
    env = start_env(mergeMethod=method)
    env.ci.enabled = False
    numbers = open_three(env)
    for number in numbers:
        env.submit(number)
        env.wait_for("testing", number)
    for number in reversed(numbers):
        env.ci.report(env.test_branch_tip(number), "success")
    env.wait_for("merged", *numbers)
    assert has_all_three(env)
    env.evidence.collect()
    assert len(env.evidence.landings) == 1


@METHODS
def test_a_batch_of_three_is_tested_once_and_lands_as_one(start_env: StartEnvironment, method: str):
    env = start_env(mergeMethod=method, batch=True, batchingMinSize=3)
    numbers = open_three(env)
    env.submit(*numbers)
    env.wait_for("merged", *numbers)
    assert has_all_three(env)
    env.evidence.collect()
    assert (len(env.evidence.runs), len(env.evidence.landings)) == (1, 1)
    assert len({env.submission(number)["verifiedByTestRun"] for number in numbers}) == 1


@pytest.mark.long
@METHODS
def test_independent_lanes_land_separately_and_later_ones_are_rebased(start_env: StartEnvironment, method: str):
    env = start_env(**PARALLEL, mergeMethod=method)
    env.ci.enabled = False
    numbers = open_three(env)
    for number, target in zip(numbers, ("front", "back", "docs"), strict=True):
        env.upload_impacted_targets(number, target)
    env.submit(*numbers)
    env.wait_for("testing", *numbers)
    assert [env.run_of(number)["dependentPrs"] for number in numbers] == [[], [], []]
    for number in reversed(numbers):
        env.ci.report(env.test_branch_tip(number), "success")
        env.wait_for("merged", number)
    assert has_all_three(env)
    env.evidence.collect()
    rebased = [env.evidence.is_rebased(landing) for landing in env.evidence.landings]
    as_tested = [env.evidence.landed_as_tested(landing) for landing in env.evidence.landings]
    assert (as_tested, rebased[1:]) == ([True, False, False], [True, True])


def test_in_parallel_mode_a_pr_waits_for_its_targets_and_depends_on_prs_that_share_them(start_env: StartEnvironment):
    env = start_env(**PARALLEL)
    env.ci.enabled = False
    first, second, third = open_three(env)
    env.submit(first, second, third)
    assert env.submission(first)["reason"]["code"] == "missing_impacted_targets"
    env.upload_impacted_targets(first, "front")
    env.wait_for("testing", first)
    env.upload_impacted_targets(second, "back")
    env.wait_for("testing", second)
    env.upload_impacted_targets(third, "front", "back")
    env.wait_for("testing", third)
    assert env.run_of(third)["dependentPrs"] == [first, second]
    env.ci.enabled = True
    env.wait_for("merged", first, second, third)


@pytest.mark.long
def test_with_optimistic_merging_a_passed_run_clears_the_failed_one_ahead(start_env: StartEnvironment):
    env = start_env(canOptimisticallyMerge=True, pendingFailureDepth=1, concurrency=2)
    env.ci.enabled = False
    first, second = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit_in_order(first, second)
    env.wait_for("testing", first, second)
    env.ci.report(env.test_branch_tip(first), "failure")
    env.wait_for("pending_failure", first)
    env.ci.report(env.test_branch_tip(second), "success")
    env.wait_for("merged", first, second)
    assert "successor_passed" in env.reasons(first)
    env.evidence.collect()
    assert len(env.evidence.landings) == 1


@pytest.mark.long
@METHODS
def test_a_head_on_the_tip_with_all_statuses_merges_directly(start_env: StartEnvironment, method: str):
    env = start_env(mergeMethod=method, directMergeMode="always")
    number = env.open_pr({"a.txt": "1"})
    env.ci.report(env.origin.tip(f"refs/pull/{number}/head"), "success")
    env.submit(number)
    env.wait_for("merged", number)
    assert env.reason(number) == "merged_directly"
    assert "testing" not in {change["to"] for change in env.submission(number)["timeline"]}
    assert env.origin.files("main") == {"README": "1", "a.txt": "1"}


@pytest.mark.long
def test_a_head_behind_the_tip_is_tested_even_if_its_statuses_passed(start_env: StartEnvironment):
    env = start_env(directMergeMode="always")
    number = env.open_pr({"a.txt": "1"})
    env.origin.commit("main", {"b.txt": "1"})
    env.ci.report(env.origin.tip(f"refs/pull/{number}/head"), "success")
    env.submit(number)
    env.wait_for("merged", number)
    assert env.reason(number) == "merged_by_queue"


@pytest.mark.long
def test_pr_merged_by_hand_is_recorded_as_merged_and_does_not_land_again(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    env.origin.set_ref("main", env.origin.tip(f"refs/pull/{number}/head"))
    env.wait_for("merged", number)
    assert env.reason(number) == "merged_manually"
    env.wait_until_clean()
    env.evidence.collect()
    assert env.evidence.landings == ()
