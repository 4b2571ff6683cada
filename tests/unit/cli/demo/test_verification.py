"""The verification at the end of the demo finds every wrong outcome."""

from pathlib import Path

import httpx2
import pytest

from mergeyard.cli.demo.sample_repository import (
    MERGE_CONFLICT,
    MERGED,
    SAMPLE_PULL_REQUESTS,
    TESTS_FAILED,
    create_sample_repository,
)
from mergeyard.cli.demo.verification import (
    verify_landed_commits,
    verify_main_branch,
    verify_no_test_branches,
    verify_outcomes,
)
from mergeyard.client import AsyncClient
from tests.support.asynchronous import asynchronous
from tests.support.demo import a_finished_progress, a_progress, a_submission
from tests.support.repositories import Origin

RUN = "6f1d2c3b-4a59-8e7f-a012-3456789abcde"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "till.git")


def a_run(tip: str, status: str) -> dict[str, object]:
    return {
        "id": RUN,
        "requiredStatuses": ["unit"],
        "requiredStatusesSource": "service_config",
        "testBranch": f"mergeyard/pr-1/{RUN}",
        "testBranchSha": tip,
        "checkSuites": [],
        "statusChecks": [],
        "testedPullRequests": [],
        "status": status,
        "createdAt": "2026-11-14T10:16:02.000Z",
        "dependentPrs": [],
        "isBisection": False,
        "baseSha": tip,
    }


async def differences_of(origin: Origin, *, merged: str, tested: str, status: str = "succeeded") -> tuple[str, ...]:
    """When #1 merged as the commit `merged` and its run tested the commit `tested`."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=a_run(tested, status)))
    progress = a_progress(a_submission(1, "merged", mergedSha=merged, verifiedByTestRun=RUN))
    async with AsyncClient("http://server", "token", transport=transport) as client:
        return (await verify_landed_commits(progress, client, origin.path)).differences


# Outcomes


def test_expected_outcomes_have_no_differences():
    assert verify_outcomes(a_finished_progress()).differences == ()


def test_conflicting_pull_requests_can_end_in_either_order():
    assert (
        verify_outcomes(
            a_finished_progress(rename=TESTS_FAILED, compare=MERGED, early=MERGE_CONFLICT, late=MERGED)
        ).differences
        == ()
    )


def test_conflicting_pull_requests_must_not_both_merge():
    assert verify_outcomes(a_finished_progress(compare=MERGED)).differences == (
        "#6 should be failed: test_run_failed, not merged",
    )


def test_a_failure_for_another_reason_is_a_difference():
    (difference,) = verify_outcomes(a_finished_progress(gift=MERGE_CONFLICT)).differences
    assert difference == "#5 should be failed: test_run_failed, not failed: merge_conflict"


def test_a_missing_submission_is_a_difference():
    assert len(verify_outcomes(a_progress()).differences) == len(SAMPLE_PULL_REQUESTS)


# The repository


@pytest.mark.long
@asynchronous
async def test_a_failing_main_branch_is_a_difference(origin: Origin, tmp_path: Path):
    await create_sample_repository(origin.path)
    assert (await verify_main_branch(origin.path, tmp_path / "before")).differences == ()
    origin.commit("main", {"menu/green": "0\n"})
    (difference,) = (await verify_main_branch(origin.path, tmp_path / "after")).differences
    assert "unit failed" in difference
    assert "not ok  tests/test_total.sh" in difference


@asynchronous
async def test_a_tested_commit_is_accepted(origin: Origin):
    await create_sample_repository(origin.path)
    merged = origin.commit("main", {"menu/honey": "5\n"})
    assert await differences_of(origin, merged=merged, tested=merged) == ()


@asynchronous
async def test_a_commit_that_its_run_did_not_test_is_a_difference(origin: Origin):
    await create_sample_repository(origin.path)
    tested = origin.branch("tested", base="main", files={"menu/honey": "4\n"})
    merged = origin.commit("main", {"menu/honey": "5\n"})
    (difference,) = await differences_of(origin, merged=merged, tested=tested)
    assert "did not test" in difference


@asynchronous
async def test_a_commit_whose_run_failed_is_a_difference(origin: Origin):
    await create_sample_repository(origin.path)
    merged = origin.commit("main", {"menu/honey": "5\n"})
    (difference,) = await differences_of(origin, merged=merged, tested=merged, status="failed")
    assert "did not test" in difference


@asynchronous
async def test_a_commit_without_a_submission_is_a_difference(origin: Origin):
    await create_sample_repository(origin.path)
    merged = origin.commit("main", {"menu/honey": "5\n"})
    other_commit = origin.commit("main", {"menu/honey": "6\n"})
    assert await differences_of(origin, merged=merged, tested=merged) == (f"{other_commit} belongs to no submission",)


@asynchronous
async def test_a_repository_without_test_branches_has_no_differences(origin: Origin):
    await create_sample_repository(origin.path)
    assert (await verify_no_test_branches(origin.path)).differences == ()
