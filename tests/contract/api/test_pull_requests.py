"""Pull requests: requests, responses, errors and repeats as the table of `spec/contract.md` has them."""

from pathlib import Path
from typing import Any

import pytest

from mergeyard.domain.access import DEFAULT_SCOPES, Scope
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.service.submissions import ImpactedTargetsUploads
from tests.contract.api.error_triggers import merge_in_progress
from tests.contract.api.harness import QUEUE, ApiHarness, api_with_queue, code_of
from tests.support.asynchronous import asynchronous

FIELDS_NOT_IN_THE_SPEC = {
    "noBatch", "mergeability", "testRunId", "verifiedByTestRun", "position", "reason", "requirements",
    "estimatedMergeAt", "estimatedMergeAtP90", "submittedAt", "mergedSha",
}  # fmt: skip


# submitPullRequest


@asynchronous
async def test_a_submitted_pull_request_is_returned_with_every_field(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        first = await api.ask("submitPullRequest", pr={"number": 1, "sha": api.world.origin.tip("feature1")})
        assert first.keys() > FIELDS_NOT_IN_THE_SPEC
        assert (first["priorityValue"], first["priorityName"], first["usedDefaultPriorityName"]) == (
            100, "medium", "medium",
        )  # fmt: skip
        assert (first["noBatch"], first["forceEnqueued"], first["skipTheLine"]) == (False, False, False)
        assert (first["mergedSha"], first["verifiedByTestRun"], first["estimatedMergeAt"]) == (None, None, None)
        await api.passes(1)
        last = await api.pull_request(1)
        assert last["mergedSha"] == api.world.origin.tip("main")
        assert last["verifiedByTestRun"] == last["testRunId"]
        assert (last["id"], last["position"], last["isCurrentlySubmittedToQueue"]) == (first["id"], None, False)


PRIORITIES: list[tuple[Any, int, str]] = [
    ("urgent", 0, "urgent"), ("HIGH", 10, "high"), ("medium", 100, "medium"), ("low", 200, "low"),
    (0, 0, "urgent"), (10, 10, "high"), (33, 33, "33"), (255, 255, "255"), (33.0, 33, "33"),
]  # fmt: skip


@asynchronous
async def test_a_priority_is_a_number_or_a_name(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        api.world.set_pull_request(1, draft=True)
        for given, value, name in PRIORITIES:
            response = await api.ask("submitPullRequest", pr={"number": 1}, priority=given)
            assert (response["priorityValue"], response["priorityName"]) == (value, name)
            assert response["skipTheLine"] is (value == 0)
            assert "usedDefaultPriorityName" not in response


@asynchronous
async def test_a_priority_of_null_means_that_none_is_given(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        first = await api.ask("submitPullRequest", pr={"number": 1}, priority=None)
        assert (first["priorityName"], first["usedDefaultPriorityName"]) == ("medium", "medium")
        await api.ask("submitPullRequest", pr={"number": 1}, priority="low")
        again = await api.ask("submitPullRequest", pr={"number": 1}, priority=None)
        assert (again["priorityName"], "usedDefaultPriorityName" in again) == ("low", False)


@asynchronous
async def test_submitting_again_changes_only_what_is_given(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2, 3)
        await api.submit(1, 2, 3)
        before = await api.pull_request(3)
        again = await api.ask("submitPullRequest", pr={"number": 3}, noBatch=True)
        assert again == before | {"noBatch": True}
        assert (await api.pull_request(3))["position"] == 3
        raised = await api.ask("submitPullRequest", pr={"number": 3}, priority="high")
        assert (raised["id"], raised["noBatch"], raised["position"]) == (before["id"], True, 2)


@asynchronous
async def test_submitting_after_the_end_starts_a_new_submission(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2)
        await api.submit(1, 2)
        first = await api.ask("cancelPullRequest", pr={"number": 1})
        second = await api.ask("submitPullRequest", pr={"number": 1})
        assert second["id"] != first["id"]
        assert (await api.pull_request(1))["position"] == 2


@asynchronous
async def test_a_pull_request_that_is_not_ready_has_a_reason_and_no_error(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2, 3, 4, 5)
        api.world.origin.branch("other", base="main")
        api.world.set_pull_request(1, base="other")
        api.world.set_pull_request(2, draft=True)
        api.world.origin.commit("feature3", {"README": "mine\n"})
        api.world.set_pull_request(3, head=api.world.origin.tip("feature3"))
        api.world.origin.commit("main", {"README": "theirs\n"})
        await api.world.advance_time(2000)
        await api.submit(1, 2, 3)
        reasons = [await _waits(api, number) for number in (1, 2, 3)]
        assert reasons == ["base_branch_mismatch", "draft", "not_mergeable"]
        assert (await api.pull_request(3))["mergeability"] == "not_mergeable"
        await api.ask("updateQueue", state="PAUSED")
        await api.submit(4)
        assert await _waits(api, 4) == "queue_paused"
        await api.ask("updateQueue", state="DRAINING")
        assert await _waits(api, 4) == "queue_draining"
        await api.ask("updateQueue", state="RUNNING", mode="parallel")
        await api.submit(5)
        assert await _waits(api, 5) == "missing_impacted_targets"


async def _waits(api: ApiHarness, number: int) -> str:
    pull_request = await api.pull_request(number)
    assert (pull_request["state"], pull_request["position"], pull_request["isCurrentlySubmittedToQueue"]) == (
        "not_ready",
        None,
        True,
    )
    assert pull_request["reason"]["waitingFor"] == []
    return pull_request["reason"]["code"]


@asynchronous
async def test_a_head_that_the_target_branch_contains_is_already_merged(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        api.world.origin.set_ref("main", api.world.origin.tip("feature1"))
        await api.world.advance_time(2000)
        assert await api.refusal_code("submitPullRequest", pr={"number": 1}) == "pr_already_merged"


@asynchronous
async def test_force_skips_the_wait_for_mergeability_and_not_the_tests(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        response = await api.ask("submitPullRequest", pr={"number": 1}, force=True)
        assert response["forceEnqueued"]
        assert await api.state(1) == "testing"


@asynchronous
async def test_urgent_priority_and_force_need_their_own_scope(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        token = await api.token(*DEFAULT_SCOPES)
        for options in ({"priority": "urgent"}, {"priority": 0}, {"force": True}):
            assert await api.refusal_code("submitPullRequest", pr={"number": 1}, token=token, **options) == (
                "insufficient_scope"
            )
        await api.ask("submitPullRequest", pr={"number": 1}, token=token, priority=1, force=False)


# cancelPullRequest, restartTestsOnPullRequest


@asynchronous
async def test_cancelling_twice_is_no_error_but_cancelling_a_concluded_submission_is(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2, 3)
        assert await api.refusal_code("cancelPullRequest", pr={"number": 1}) == "pr_not_submitted"
        await api.submit(1, 2)
        first = await api.ask("cancelPullRequest", pr={"number": 1})
        assert (first["state"], first["reason"]["code"]) == ("cancelled", "cancelled_by_user")
        assert await api.ask("cancelPullRequest", pr={"number": 1}) == first
        await api.passes(2)
        await api.submit(3)
        await api.fails(3)
        assert [await api.state(2), await api.state(3)] == ["merged", "failed"]
        for number in (2, 3):
            assert await api.refusal_code("cancelPullRequest", pr={"number": number}) == "pr_not_in_queue"


@asynchronous
async def test_a_restart_starts_a_new_run_at_the_same_position_and_keeps_runs_behind_it(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2)
        assert await api.refusal_code("restartTestsOnPullRequest", pr={"number": 1}) == "pr_not_submitted"
        await api.submit(1, 2)
        first, behind = await api.run(1), await api.run(2)
        await api.ask("restartTestsOnPullRequest", pr={"number": 1})
        second = await api.run(1)
        assert second["id"] != first["id"]
        assert second["testBranchSha"] != first["testBranchSha"]
        assert (await api.run(2))["id"] == behind["id"]
        assert (await api.pull_request(1))["position"] == 1
        ended = await api.ask("getMergeQueueTestingDetails", testRunId=first["id"])
        assert ended["status"] == "cancelled"


@asynchronous
async def test_a_restart_before_a_run_changes_nothing_and_after_the_end_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2, 3)
        api.world.set_pull_request(3, draft=True)
        await api.submit(1, 2, 3)
        for number, state in ((2, "pending"), (3, "not_ready")):
            before = await api.pull_request(number)
            assert before["state"] == state
            assert await api.ask("restartTestsOnPullRequest", pr={"number": number}) == before
        await api.passes(1)
        await api.fails(2)
        await api.ask("cancelPullRequest", pr={"number": 3})
        assert [await api.state(number) for number in (1, 2, 3)] == ["merged", "failed", "cancelled"]
        for number in (1, 2, 3):
            assert await api.refusal_code("restartTestsOnPullRequest", pr={"number": number}) == "pr_not_in_queue"


@asynchronous
async def test_a_restart_during_the_merge_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, merge_in_progress(api) as pr:
        refused = await api.call("restartTestsOnPullRequest", QUEUE | {"pr": pr})
        assert code_of(refused) == "merge_in_progress"


@asynchronous
async def test_a_restart_in_a_paused_queue_waits(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        await api.ask("updateQueue", state="PAUSED")
        await api.ask("restartTestsOnPullRequest", pr={"number": 1})
        assert await api.reason(1) == "queue_paused"
        waiting = await api.pull_request(1)
        assert await api.ask("restartTestsOnPullRequest", pr={"number": 1}) == waiting
        await api.ask("updateQueue", state="RUNNING")
        assert await api.state(1) == "testing"


# getSubmittedPullRequest


@pytest.mark.long
@asynchronous
async def test_a_pull_request_is_found_by_its_head_branch(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2)
        api.world.set_pull_request(2, branch="feature1")
        await api.submit(1, 2)
        assert (await api.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 2
        await api.ask("cancelPullRequest", pr={"number": 2})
        assert (await api.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 1
        assert (await api.ask("getSubmittedPullRequest", pr={"number": 2, "branch": "feature1"}))["prNumber"] == 2
        await api.ask("cancelPullRequest", pr={"number": 1})
        assert (await api.ask("getSubmittedPullRequest", pr={"branch": "feature1"}))["prNumber"] == 2
        assert await api.refusal_code("getSubmittedPullRequest", pr={"branch": "nothing"}) == "pr_not_submitted"


@asynchronous
async def test_a_timeline_lists_every_change_newest_first(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        await api.passes(1)
        assert "timeline" not in await api.pull_request(1)
        timeline = (await api.pull_request(1, includeTimeline=True))["timeline"]
        assert [moment["reason"] for moment in reversed(timeline)] == [
            "submitted", "ready", "test_run_started", "test_run_passed", "merged_by_queue",
        ]  # fmt: skip
        steps = [(moment["from"], moment["to"]) for moment in reversed(timeline)]
        assert steps[:3] == [(None, "not_ready"), ("not_ready", "pending"), ("pending", "testing")]
        for moment in timeline:
            assert moment.keys() == {"at", "from", "to", "reason", "message", "actor", "causedBy", "testRunId"}
            assert moment["message"]
            assert moment["actor"]
        assert timeline[-1]["actor"] == "tests"


# setImpactedTargets


TARGETS: list[tuple[Any, Any]] = [
    (["b", "a", "b"], 2), ([], 0), ("ALL", "ALL"), ("all", "ALL"), ("IMPACTS_ALL", "ALL"), (["a", "ALL"], "ALL"),
    (["é" * 512], 1), (["", "a", ""], 1), ([""], 0),
]  # fmt: skip


@asynchronous
async def test_impacted_targets_are_counted_or_all(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        for targets, response in TARGETS:
            answer = await api.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=targets)
            assert answer == {"prNumber": 1, "prSha": api.world.origin.tip("feature1"), "impactedTargets": response}


@asynchronous
async def test_impacted_targets_belong_to_a_head_and_can_arrive_before_it(tmp_path: Path):
    async with api_with_queue(tmp_path, mode="parallel") as api:
        api.world.open(1)
        assert await api.refusal_code("setImpactedTargets", pr={"number": 9}, impactedTargets=[]) == "pr_not_found"
        old, new = api.world.origin.tip("feature1"), api.world.origin.commit("feature1", {"more": "1\n"})
        answer = await api.ask("setImpactedTargets", pr={"number": 1, "sha": new.upper()}, impactedTargets=["a"])
        assert answer["prSha"] == new
        api.world.set_pull_request(1, draft=True)
        await api.submit(1)
        readiness = (await api.pull_request(1))["readiness"]
        assert (readiness["requiresImpactedTargets"], readiness["hasImpactedTargets"]) == (True, False)
        assert (await api.pull_request(1))["prSha"] == old
        api.world.set_pull_request(1, head=new, draft=False)
        await api.world.advance_time(2000)
        assert (await api.pull_request(1))["readiness"]["hasImpactedTargets"]
        assert (await api.run(1))["impactedTargets"] == ["a"]
        await api.ask("setImpactedTargets", pr={"number": 1}, impactedTargets="ALL")
        assert (await api.run(1))["impactedTargets"] == ["ALL"]
        await api.ask("cancelPullRequest", pr={"number": 1})
        assert (await api.pull_request(1))["readiness"]["hasImpactedTargets"]


@asynchronous
async def test_impacted_targets_are_refused_for_commits_that_the_host_does_not_have(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        for sha in ("e" * 40, "e" * 64):
            refused = await api.refusal_code("setImpactedTargets", pr={"number": 1, "sha": sha}, impactedTargets=["a"])
            assert refused == "commit_not_found"
        await api.submit(1)
        refused = await api.refusal_code("setImpactedTargets", pr={"number": 1, "sha": "e" * 40}, impactedTargets=["a"])
        assert refused == "commit_not_found"
        for sha in (api.world.origin.tip("main"), api.world.origin.tip("feature1")):
            await api.ask("setImpactedTargets", pr={"number": 1, "sha": sha}, impactedTargets=["a"])


@asynchronous
async def test_a_token_over_its_quota_of_targets_is_refused_and_others_are_not(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        service = api.world.service
        service.impacted_targets_uploads = ImpactedTargetsUploads(
            service.registry, service.repositories, quota_bytes=300
        )
        api.world.open(1, 2)
        await api.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=["a" * 200])
        response = await api.post("setImpactedTargets", pr={"number": 2}, impactedTargets=["b" * 200])
        assert (response.status_code, response.headers["retry-after"]) == (429, "3600")
        assert not await api.world.store.has_impacted_targets(
            api.world.queue_actor.id, PullRequestNumber(2), api.world.origin.tip("feature2")
        )
        other = await api.token(Scope.TARGETS)
        response = await api.post("setImpactedTargets", token=other, pr={"number": 2}, impactedTargets=["b" * 200])
        assert response.status_code == 200


# All endpoints


ENDPOINTS = (
    "submitPullRequest", "cancelPullRequest", "restartTestsOnPullRequest", "getSubmittedPullRequest",
    "setImpactedTargets", "previewCommitMessage",
)  # fmt: skip


@asynchronous
async def test_every_pull_request_endpoint_reports_a_missing_queue(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        other: dict[str, Any] = QUEUE | {"targetBranch": "other", "pr": {"number": 1}, "impactedTargets": []}
        for endpoint in ENDPOINTS:
            assert await api.refusal_code(endpoint, **other) == "queue_not_found"


@asynchronous
async def test_the_commit_message_can_be_read_before_a_pull_request_is_submitted(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        await api.ask("updateQueue", mergeMethod="squash", squashTemplate="{title}\n\nBy {author}")
        api.world.open(1)
        api.world.set_pull_request(1, title="Greet", author="Ada <ada@example.org>")
        head = api.world.origin.tip("feature1")
        trailers = f"Mergeyard-Pull-Request: 1\nMergeyard-Run: (the test run)\nMergeyard-Head: {head}\n"
        assert await api.ask("previewCommitMessage", pr={"number": 1}) == {
            "prNumber": 1,
            "prSha": head,
            "mergeMethod": "squash",
            "mergesBy": "tested_commit",
            "explanation": "The queue pushes the tested commit and moves the head branch feature1 to it.",
            "commitMessages": [f"Greet\n\nBy Ada\n\n{trailers}"],
        }
        assert await api.refusal_code("previewCommitMessage", pr={"number": 2}) == "pr_not_found"
        assert (await api.ask("getQueue"))["enqueuedPullRequests"] == []


@asynchronous
async def test_a_preview_lists_what_an_action_would_stop_and_changes_nothing(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2, 3)
        await api.submit(1, 2)
        await api.advance(90_000)
        before = await api.ask("getQueue")
        first, second = [each["testRunId"] for each in before["enqueuedPullRequests"]]

        async def preview(number: int, action: str, **members: Any) -> dict[str, Any]:
            return await api.ask("previewPullRequestAction", pr={"number": number}, action=action, **members)

        behind = {"testRunId": second, "prNumbers": [2], "elapsedSeconds": 90.0}
        both = [{"testRunId": first, "prNumbers": [1], "elapsedSeconds": 90.0}, behind]
        nothing: dict[str, Any] = {
            "stoppedTestRuns": [],
            "retestedPrNumbers": [],
            "lostCiSeconds": 0.0,
            "isUpperBound": False,
        }
        assert await preview(1, "cancel") == {
            "stoppedTestRuns": both,
            "retestedPrNumbers": [2],
            "lostCiSeconds": 180.0,
            "isUpperBound": False,
        }
        assert (await preview(2, "restart"))["stoppedTestRuns"] == [behind]
        assert (await preview(2, "priority", priority="urgent"))["stoppedTestRuns"] == both
        assert (await preview(3, "submit", priority=0))["retestedPrNumbers"] == [1, 2]
        assert await preview(3, "submit") == nothing
        assert await preview(3, "cancel") == nothing
        assert await api.ask("getQueue") == before
