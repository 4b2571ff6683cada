"""What is asked about pull requests: request, answer, refusals and repeats, as the contract's table has them."""

from pathlib import Path
from typing import Any

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope
from mergeyard.service.uploads import Uploads
from tests.contract.api.desk import QUEUE, Desk, a_desk
from tests.support.asynchronous import asynchronous

BEYOND_THE_DOCUMENT = {
    "noBatch", "mergeability", "testRunId", "verifiedByTestRun", "position", "reason", "estimatedMergeAt",
    "estimatedMergeAtP90", "submittedAt", "mergedSha",
}  # fmt: skip


# submitPullRequest


@asynchronous
async def test_a_submitted_pull_request_is_told_whole(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        first = await desk.ask("submitPullRequest", pr={"number": 1, "sha": desk.world.origin.tip("feature1")})
        assert first.keys() > BEYOND_THE_DOCUMENT
        assert (first["priorityValue"], first["priorityName"], first["usedDefaultPriorityName"]) == (
            100, "medium", "medium",
        )  # fmt: skip
        assert (first["noBatch"], first["forceEnqueued"], first["skipTheLine"]) == (False, False, False)
        assert (first["mergedSha"], first["verifiedByTestRun"], first["estimatedMergeAt"]) == (None, None, None)
        await desk.passes(1)
        last = await desk.pull(1)
        assert last["mergedSha"] == desk.world.origin.tip("main")
        assert last["verifiedByTestRun"] == last["testRunId"]
        assert (last["id"], last["position"], last["isCurrentlySubmittedToQueue"]) == (first["id"], None, False)


PRIORITIES: list[tuple[Any, int, str]] = [
    ("urgent", 0, "urgent"), ("HIGH", 10, "high"), ("medium", 100, "medium"), ("low", 200, "low"),
    (0, 0, "urgent"), (10, 10, "high"), (33, 33, "33"), (255, 255, "255"), (33.0, 33, "33"),
]  # fmt: skip


@asynchronous
async def test_a_priority_is_a_number_or_a_name(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        desk.world.set_pull(1, draft=True)
        for given, value, name in PRIORITIES:
            told = await desk.ask("submitPullRequest", pr={"number": 1}, priority=given)
            assert (told["priorityValue"], told["priorityName"]) == (value, name)
            assert told["skipTheLine"] is (value == 0)
            assert "usedDefaultPriorityName" not in told


@asynchronous
async def test_submitting_again_changes_only_what_is_given(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=1) as desk:
        desk.world.open(1, 2, 3)
        await desk.submit(1, 2, 3)
        before = await desk.pull(3)
        again = await desk.ask("submitPullRequest", pr={"number": 3}, noBatch=True)
        assert again == before | {"noBatch": True}
        assert (await desk.pull(3))["position"] == 3
        raised = await desk.ask("submitPullRequest", pr={"number": 3}, priority="high")
        assert (raised["id"], raised["noBatch"], raised["position"]) == (before["id"], True, 2)


@asynchronous
async def test_after_its_end_a_submission_is_a_new_one(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=1) as desk:
        desk.world.open(1, 2)
        await desk.submit(1, 2)
        first = await desk.ask("cancelPullRequest", pr={"number": 1})
        second = await desk.ask("submitPullRequest", pr={"number": 1})
        assert second["id"] != first["id"]
        assert (await desk.pull(1))["position"] == 2


@asynchronous
async def test_what_keeps_it_waiting_is_a_reason_and_no_error(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2, 3, 4, 5)
        desk.world.origin.branch("other", upon="main")
        desk.world.set_pull(1, base="other")
        desk.world.set_pull(2, draft=True)
        desk.world.origin.commit("feature3", {"README": "mine\n"})
        desk.world.set_pull(3, head=desk.world.origin.tip("feature3"))
        desk.world.origin.commit("main", {"README": "theirs\n"})
        await desk.world.time_passes(2000)
        await desk.submit(1, 2, 3)
        reasons = [await _waits(desk, number) for number in (1, 2, 3)]
        assert reasons == ["base_branch_mismatch", "draft", "not_mergeable"]
        assert (await desk.pull(3))["mergeability"] == "not_mergeable"
        await desk.ask("updateQueue", state="PAUSED")
        await desk.submit(4)
        assert await _waits(desk, 4) == "queue_paused"
        await desk.ask("updateQueue", state="DRAINING")
        assert await _waits(desk, 4) == "queue_draining"
        await desk.ask("updateQueue", state="RUNNING", mode="parallel")
        await desk.submit(5)
        assert await _waits(desk, 5) == "missing_impacted_targets"


async def _waits(desk: Desk, number: int) -> str:
    pull = await desk.pull(number)
    assert (pull["state"], pull["position"], pull["isCurrentlySubmittedToQueue"]) == ("not_ready", None, True)
    assert pull["reason"]["waitingFor"] == []
    return pull["reason"]["code"]


@asynchronous
async def test_a_head_that_the_target_holds_is_merged_already(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        desk.world.origin.set("main", desk.world.origin.tip("feature1"))
        await desk.world.time_passes(2000)
        assert await desk.refuses("submitPullRequest", pr={"number": 1}) == "pr_already_merged"


@asynchronous
async def test_force_skips_the_wait_for_mergeability_and_not_the_tests(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        told = await desk.ask("submitPullRequest", pr={"number": 1}, force=True)
        assert told["forceEnqueued"]
        assert await desk.state(1) == "testing"


@asynchronous
async def test_urgency_and_force_need_a_scope_of_their_own(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        token = await desk.token(*DEFAULT_SCOPES)
        for wish in ({"priority": "urgent"}, {"priority": 0}, {"force": True}):
            assert await desk.refuses("submitPullRequest", pr={"number": 1}, token=token, **wish) == (
                "insufficient_scope"
            )
        await desk.ask("submitPullRequest", pr={"number": 1}, token=token, priority=1, force=False)


# cancelPullRequest, restartTestsOnPullRequest


@asynchronous
async def test_cancelling_twice_is_no_error_and_cancelling_what_ended_is_one(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2, 3)
        assert await desk.refuses("cancelPullRequest", pr={"number": 1}) == "pr_not_submitted"
        await desk.submit(1, 2)
        first = await desk.ask("cancelPullRequest", pr={"number": 1})
        assert (first["state"], first["reason"]["code"]) == ("cancelled", "cancelled_by_user")
        assert await desk.ask("cancelPullRequest", pr={"number": 1}) == first
        await desk.passes(2)
        await desk.submit(3)
        await desk.fails(3)
        assert [await desk.state(2), await desk.state(3)] == ["merged", "failed"]
        for number in (2, 3):
            assert await desk.refuses("cancelPullRequest", pr={"number": number}) == "pr_not_in_queue"


@asynchronous
async def test_a_restart_gives_a_new_run_in_the_same_place_and_leaves_those_behind_alone(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2)
        assert await desk.refuses("restartTestsOnPullRequest", pr={"number": 1}) == "pr_not_submitted"
        await desk.submit(1, 2)
        first, behind = await desk.run(1), await desk.run(2)
        await desk.ask("restartTestsOnPullRequest", pr={"number": 1})
        second = await desk.run(1)
        assert second["id"] != first["id"]
        assert second["testBranchSha"] != first["testBranchSha"]
        assert (await desk.run(2))["id"] == behind["id"]
        assert (await desk.pull(1))["position"] == 1
        ended = await desk.ask("getMergeQueueTestingDetails", testRunId=first["id"])
        assert ended["status"] == "cancelled"


@asynchronous
async def test_a_restart_in_a_paused_queue_waits(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        await desk.ask("updateQueue", state="PAUSED")
        await desk.ask("restartTestsOnPullRequest", pr={"number": 1})
        assert await desk.reason(1) == "queue_paused"
        assert await desk.refuses("restartTestsOnPullRequest", pr={"number": 1}) == "tests_not_running"
        await desk.ask("updateQueue", state="RUNNING")
        assert await desk.state(1) == "testing"


# getSubmittedPullRequest


@asynchronous
async def test_a_pull_request_is_found_by_its_head_branch(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2)
        desk.world.set_pull(2, branch="feature1")
        await desk.submit(1, 2)
        assert (await desk.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 2
        await desk.ask("cancelPullRequest", pr={"number": 2})
        assert (await desk.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 1
        assert (await desk.ask("getSubmittedPullRequest", pr={"number": 2, "branch": "feature1"}))["prNumber"] == 2
        await desk.ask("cancelPullRequest", pr={"number": 1})
        assert (await desk.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 2
        assert await desk.refuses("getSubmittedPullRequest", pr={"branch": "nothing"}) == "pr_not_submitted"


@asynchronous
async def test_a_timeline_tells_everything_newest_first(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        await desk.passes(1)
        assert "timeline" not in await desk.pull(1)
        timeline = (await desk.pull(1, includeTimeline=True))["timeline"]
        assert [moment["reason"] for moment in reversed(timeline)] == [
            "submitted", "ready", "test_run_started", "test_run_passed", "merged_by_queue",
        ]  # fmt: skip
        steps = [(moment["from"], moment["to"]) for moment in reversed(timeline)]
        assert steps[:3] == [(None, "not_ready"), ("not_ready", "pending"), ("pending", "testing")]
        for moment in timeline:
            assert moment.keys() == {"at", "from", "to", "reason", "message", "actor", "testRunId"}
            assert moment["message"]
            assert moment["actor"]
        assert timeline[-1]["actor"] == "tests"


# setImpactedTargets


TARGETS: list[tuple[Any, Any]] = [
    (["b", "a", "b"], 2), ([], 0), ("ALL", "ALL"), ("all", "ALL"), ("IMPACTS_ALL", "ALL"), (["a", "ALL"], "ALL"),
    (["é" * 512], 1),
]  # fmt: skip


@asynchronous
async def test_impacted_targets_are_counted_or_all(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        for targets, told in TARGETS:
            answer = await desk.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=targets)
            assert answer == {"prNumber": 1, "prSha": desk.world.origin.tip("feature1"), "impactedTargets": told}


@asynchronous
async def test_impacted_targets_belong_to_a_head_and_may_come_before_it(tmp_path: Path):
    async with a_desk(tmp_path, mode="parallel") as desk:
        desk.world.open(1)
        assert await desk.refuses("setImpactedTargets", pr={"number": 9}, impactedTargets=[]) == "pr_not_found"
        old, new = desk.world.origin.tip("feature1"), desk.world.origin.commit("feature1", {"more": "1\n"})
        answer = await desk.ask("setImpactedTargets", pr={"number": 1, "sha": new.upper()}, impactedTargets=["a"])
        assert answer["prSha"] == new
        desk.world.set_pull(1, draft=True)
        await desk.submit(1)
        readiness = (await desk.pull(1))["readiness"]
        assert (readiness["requiresImpactedTargets"], readiness["hasImpactedTargets"]) == (True, False)
        assert (await desk.pull(1))["prSha"] == old
        desk.world.set_pull(1, head=new, draft=False)
        await desk.world.time_passes(2000)
        assert (await desk.pull(1))["readiness"]["hasImpactedTargets"]
        assert (await desk.run(1))["impactedTargets"] == ["a"]
        await desk.ask("setImpactedTargets", pr={"number": 1}, impactedTargets="ALL")
        assert (await desk.run(1))["impactedTargets"] == ["ALL"]
        await desk.ask("cancelPullRequest", pr={"number": 1})
        assert (await desk.pull(1))["readiness"]["hasImpactedTargets"]


@asynchronous
async def test_impacted_targets_are_refused_for_commits_that_the_host_does_not_have(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        for sha in ("e" * 40, "e" * 64):
            refused = await desk.refuses("setImpactedTargets", pr={"number": 1, "sha": sha}, impactedTargets=["a"])
            assert refused == "commit_not_found"
        await desk.submit(1)
        refused = await desk.refuses("setImpactedTargets", pr={"number": 1, "sha": "e" * 40}, impactedTargets=["a"])
        assert refused == "commit_not_found"
        for sha in (desk.world.origin.tip("main"), desk.world.origin.tip("feature1")):
            await desk.ask("setImpactedTargets", pr={"number": 1, "sha": sha}, impactedTargets=["a"])


@asynchronous
async def test_a_token_over_its_quota_of_targets_is_refused_and_others_are_not(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        service = desk.world.service
        service.uploads = Uploads(service.yard, service.sites, quota_bytes=300)
        desk.world.open(1, 2)
        await desk.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=["a" * 200])
        response = await desk.post("setImpactedTargets", pr={"number": 2}, impactedTargets=["b" * 200])
        assert (response.status_code, response.headers["retry-after"]) == (429, "3600")
        assert not await desk.world.store.has_targets(
            desk.world.keeper.id, PrNumber(2), desk.world.origin.tip("feature2")
        )
        other = await desk.token(Scope.TARGETS)
        response = await desk.post("setImpactedTargets", token=other, pr={"number": 2}, impactedTargets=["b" * 200])
        assert response.status_code == 200


# All of them


ENDPOINTS = (
    "submitPullRequest", "cancelPullRequest", "restartTestsOnPullRequest", "getSubmittedPullRequest",
    "setImpactedTargets",
)  # fmt: skip


@asynchronous
async def test_nobody_is_found_where_there_is_no_queue(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        other: dict[str, Any] = QUEUE | {"targetBranch": "other", "pr": {"number": 1}, "impactedTargets": []}
        for endpoint in ENDPOINTS:
            assert await desk.refuses(endpoint, **other) == "queue_not_found"
