"""The demo does not call good what came out wrong."""

from pathlib import Path

import httpx
import pytest
from msgspec import convert, to_builtins

from mergeyard.api import answers
from mergeyard.cli.demo.asking import Asking
from mergeyard.cli.demo.planting import plant
from mergeyard.cli.demo.sample import IN_CONFLICT, MERGED, PULLS, RED
from mergeyard.cli.demo.verdict import endings, main_is_green, no_test_branch_is_left, what_landed_was_tested
from tests.support.asynchronous import asynchronous
from tests.support.demo import a_scene, a_stay, ended
from tests.support.repositories import Origin

RUN = "6f1d2c3b-4a59-8e7f-a012-3456789abcde"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "till.git")


def a_run(tip: str, status: str) -> answers.RunDetails:
    facts = {
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
    return convert(facts, type=answers.RunDetails)


async def doubts_about(origin: Origin, *, landed: str, tested: str, status: str = "succeeded") -> tuple[str, ...]:
    """When #1 landed as one commit and its run tested another."""
    answer = to_builtins(a_run(tested, status))
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    scene = a_scene(a_stay(1, "merged", mergedSha=landed, verifiedByTestRun=RUN))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        return (await what_landed_was_tested(scene, Asking(http), origin.path)).differences


# How everybody ended


def test_all_is_well_when_everybody_ended_as_expected():
    assert endings(ended()).differences == ()


def test_rivals_may_change_places():
    assert endings(ended(rename=RED, dearer=MERGED, early=IN_CONFLICT, late=MERGED)).differences == ()


def test_rivals_may_not_both_merge():
    assert endings(ended(dearer=MERGED)).differences == ("#6 should be failed: test_run_failed, not merged",)


def test_nobody_may_fail_for_another_reason():
    (difference,) = endings(ended(gift=IN_CONFLICT)).differences
    assert difference == "#5 should be failed: test_run_failed, not failed: merge_conflict"


def test_whoever_was_never_submitted_is_missed():
    assert len(endings(a_scene()).differences) == len(PULLS)


# The repository


@asynchronous
async def test_a_red_main_branch_is_not_called_green(origin: Origin, tmp_path: Path):
    await plant(origin.path)
    assert (await main_is_green(origin.path, tmp_path / "before")).differences == ()
    origin.commit("main", {"menu/green": "0\n"})
    (red,) = (await main_is_green(origin.path, tmp_path / "after")).differences
    assert "unit failed" in red
    assert "not ok  tests/test_total.sh" in red


@asynchronous
async def test_a_commit_that_was_tested_is_trusted(origin: Origin):
    await plant(origin.path)
    landed = origin.commit("main", {"menu/honey": "5\n"})
    assert await doubts_about(origin, landed=landed, tested=landed) == ()


@asynchronous
async def test_a_commit_that_another_run_tested_is_not_trusted(origin: Origin):
    await plant(origin.path)
    tested = origin.branch("tested", upon="main", files={"menu/honey": "4\n"})
    landed = origin.commit("main", {"menu/honey": "5\n"})
    (doubt,) = await doubts_about(origin, landed=landed, tested=tested)
    assert "did not test" in doubt


@asynchronous
async def test_a_commit_whose_run_was_red_is_not_trusted(origin: Origin):
    await plant(origin.path)
    landed = origin.commit("main", {"menu/honey": "5\n"})
    (doubt,) = await doubts_about(origin, landed=landed, tested=landed, status="failed")
    assert "did not test" in doubt


@asynchronous
async def test_a_commit_that_nobody_submitted_is_noticed(origin: Origin):
    await plant(origin.path)
    landed = origin.commit("main", {"menu/honey": "5\n"})
    stranger = origin.commit("main", {"menu/honey": "6\n"})
    assert await doubts_about(origin, landed=landed, tested=landed) == (f"nobody submitted {stranger}",)


@asynchronous
async def test_a_repository_without_test_branches_is_tidy(origin: Origin):
    await plant(origin.path)
    assert (await no_test_branch_is_left(origin.path)).differences == ()
