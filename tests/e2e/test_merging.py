"""Pull requests come in, are tested and merge, over HTTP and into a real repository."""

from typing import Any

import pytest

from tests.e2e.conftest import Build
from tests.support.premises import Premises

METHODS = pytest.mark.parametrize(
    "method",
    ["merge_commit", pytest.param("squash", marks=pytest.mark.long), pytest.param("rebase", marks=pytest.mark.long)],
)
PARALLEL: dict[str, Any] = {"mode": "parallel"}


def open_three(premises: Premises) -> list[int]:
    return [premises.open_pr({f"{name}.txt": "1", f"{name}/more": "2"}) for name in "abc"]


def has_all_three(premises: Premises) -> bool:
    return set(premises.origin.files("main")) == {
        "README",
        *(f"{name}{end}" for name in "abc" for end in (".txt", "/more")),
    }


def test_a_line_of_three_merges_as_it_was_tested(build: Build):
    premises = build()
    numbers = open_three(premises)
    premises.submit(*numbers)
    premises.wait_for("merged", *numbers)
    assert has_all_three(premises)
    assert [premises.meta(number)["state"] for number in numbers] == ["merged"] * 3
    assert premises.reasons(numbers[0]) == [
        "submitted", "ready", "test_run_started", "test_run_passed", "merged_by_queue",
    ]  # fmt: skip


@METHODS
def test_three_that_passed_one_after_another_land_in_one_update(build: Build, method: str):
    premises = build(mergeMethod=method)
    premises.ci.working = False
    numbers = open_three(premises)
    for number in numbers:
        premises.submit(number)
        premises.wait_for("testing", number)
    for number in reversed(numbers):
        premises.ci.report(premises.branch_of(number), "success")
    premises.wait_for("merged", *numbers)
    assert has_all_three(premises)
    premises.evidence.collect()
    assert len(premises.evidence.landings) == 1


@METHODS
def test_a_batch_of_three_is_tested_once_and_lands_as_one(build: Build, method: str):
    premises = build(mergeMethod=method, batch=True, batchingMinSize=3)
    numbers = open_three(premises)
    premises.submit(*numbers)
    premises.wait_for("merged", *numbers)
    assert has_all_three(premises)
    premises.evidence.collect()
    assert (len(premises.evidence.runs), len(premises.evidence.landings)) == (1, 1)
    assert len({premises.pull(number)["verifiedByTestRun"] for number in numbers}) == 1


@METHODS
def test_lanes_that_share_nothing_land_apart_and_later_ones_are_composed(build: Build, method: str):
    premises = build(**PARALLEL, mergeMethod=method)
    premises.ci.working = False
    numbers = open_three(premises)
    for number, target in zip(numbers, ("front", "back", "docs"), strict=True):
        premises.upload_targets(number, target)
    premises.submit(*numbers)
    premises.wait_for("testing", *numbers)
    assert [premises.run_of(number)["dependentPrs"] for number in numbers] == [[], [], []]
    for number in reversed(numbers):
        premises.ci.report(premises.branch_of(number), "success")
        premises.wait_for("merged", number)
    assert has_all_three(premises)
    premises.evidence.collect()
    composed = [premises.evidence.is_composed(landing) for landing in premises.evidence.landings]
    as_tested = [premises.evidence.landed_as_tested(landing) for landing in premises.evidence.landings]
    assert (as_tested, composed[1:]) == ([True, False, False], [True, True])


def test_in_parallel_mode_a_pr_waits_for_its_targets_and_for_those_it_shares_them_with(build: Build):
    premises = build(**PARALLEL)
    premises.ci.working = False
    first, second, third = open_three(premises)
    premises.submit(first, second, third)
    assert premises.pull(first)["reason"]["code"] == "missing_impacted_targets"
    premises.upload_targets(first, "front")
    premises.wait_for("testing", first)
    premises.upload_targets(second, "back")
    premises.wait_for("testing", second)
    premises.upload_targets(third, "front", "back")
    premises.wait_for("testing", third)
    assert premises.run_of(third)["dependentPrs"] == [first, second]
    premises.ci.working = True
    premises.wait_for("merged", first, second, third)


def test_one_green_behind_a_red_one_brings_both_with_optimistic_merging(build: Build):
    premises = build(canOptimisticallyMerge=True, pendingFailureDepth=1, concurrency=2)
    premises.ci.working = False
    first, second = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.line_up(first, second)
    premises.wait_for("testing", first, second)
    premises.ci.report(premises.branch_of(first), "failure")
    premises.wait_for("pending_failure", first)
    premises.ci.report(premises.branch_of(second), "success")
    premises.wait_for("merged", first, second)
    assert "successor_passed" in premises.reasons(first)
    premises.evidence.collect()
    assert len(premises.evidence.landings) == 1


@METHODS
def test_a_head_on_the_tip_with_all_statuses_merges_directly(build: Build, method: str):
    premises = build(mergeMethod=method, directMergeMode="always")
    number = premises.open_pr({"a.txt": "1"})
    premises.ci.report(premises.origin.tip(f"refs/pull/{number}/head"), "success")
    premises.submit(number)
    premises.wait_for("merged", number)
    assert premises.reason(number) == "merged_directly"
    assert premises.origin.files("main") == {"README": "1", "a.txt": "1"}


def test_a_head_behind_the_tip_is_tested_even_if_its_statuses_passed(build: Build):
    premises = build(directMergeMode="always")
    number = premises.open_pr({"a.txt": "1"})
    premises.origin.commit("main", {"b.txt": "1"})
    premises.ci.report(premises.origin.tip(f"refs/pull/{number}/head"), "success")
    premises.submit(number)
    premises.wait_for("merged", number)
    assert premises.reason(number) == "merged_by_queue"


def test_a_pr_that_somebody_merged_by_hand_is_merged_and_lands_no_second_time(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    premises.origin.set("main", premises.origin.tip(f"refs/pull/{number}/head"))
    premises.wait_for("merged", number)
    assert premises.reason(number) == "merged_manually"
    premises.wait_for_cleanliness()
    premises.evidence.collect()
    assert premises.evidence.landings == ()
