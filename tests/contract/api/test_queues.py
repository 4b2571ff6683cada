"""Queues and runs: requests, responses, errors and repeats as the table of `spec/contract.md` has them."""

import asyncio
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from mergeyard.domain.events import HostUnreachable
from mergeyard.domain.timestamps import Instant
from tests.contract.api.error_triggers import merge_in_progress
from tests.contract.api.harness import PUBLIC_URL, QUEUE, REPOSITORY, api_with_queue, api_without_queue, code_of
from tests.contract.api.spec_tables import DEFAULTS
from tests.support.asynchronous import asynchronous
from tests.support.scenario import SECOND

ENQUEUED = {
    "id", "state", "stateChangedAt", "priorityValue", "priorityName", "skipTheLine", "noBatch", "prNumber", "prTitle",
    "prSha", "prBaseBranch", "prAuthor", "testRunId", "position", "reason", "requirements",
    "estimatedMergeAt", "estimatedMergeAtP90", "estimateNote", "bisectionNote",
}  # fmt: skip
A_QUEUE = {"state", "stateReason", "branch", "repo", *DEFAULTS}


# createQueue, getQueue, updateQueue, deleteQueue


@asynchronous
async def test_a_queue_is_returned_with_every_setting(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        created = await api.ask("createQueue")
        assert created.keys() - {"enqueuedPullRequests"} == A_QUEUE
        read = await api.ask("getQueue")
        assert read.keys() - created.keys() == {"problems", "pullRequestCounts", "nextMerge"}
        assert {name: read[name] for name in A_QUEUE} == {name: created[name] for name in A_QUEUE}
        assert (created["state"], created["branch"], created["repo"]) == ("RUNNING", "main", REPOSITORY)
        assert (await api.ask("updateQueue")).keys() == A_QUEUE


@asynchronous
async def test_the_reason_for_a_state_is_returned_until_the_queue_runs_again(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert (await api.ask("getQueue"))["stateReason"] is None
        assert (await api.ask("updateQueue", state="PAUSED", stateReason="Release 2.1"))["stateReason"] == "Release 2.1"
        (queue,) = (await api.ask("listQueues"))["queues"]
        assert queue["stateReason"] == "Release 2.1"
        assert (await api.ask("updateQueue", state="RUNNING"))["stateReason"] is None
        for refused in ({"stateReason": "why"}, {"state": "PAUSED", "stateReason": "x" * 501}):
            assert await api.refusal_code("updateQueue", **refused) == "invalid_request"
        (changed, *_) = (await api.ask("listEvents", after="0"))["events"][-2:]
        assert changed["message"].endswith("Release 2.1")


@asynchronous
async def test_a_branch_never_has_two_queues(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert await api.refusal_code("createQueue") == "queue_already_exists"
        assert await api.refusal_code("createQueue", repo=REPOSITORY | {"host": "GIT.Local"}) == "queue_already_exists"
        again = await asyncio.gather(*(api.call("createQueue", QUEUE | {"targetBranch": "other"}) for _ in range(3)))
        assert {response.json()["code"] for response in again} == {"branch_not_found"}


@asynchronous
async def test_concurrent_requests_to_create_a_queue_create_one(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        answers = await asyncio.gather(*(api.call("createQueue", QUEUE) for _ in range(3)))
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409]


@asynchronous
async def test_enqueued_pull_requests_are_listed_in_order_with_not_ready_ones_last(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=2) as api:
        api.world.open(1, 2, 3, 4, 5)
        api.world.set_pull_request(1, draft=True)
        await api.submit(1, 2, 3, 4)
        await api.submit(5, priority="high")
        enqueued = (await api.ask("getQueue"))["enqueuedPullRequests"]
        assert [(pr["prNumber"], pr["state"], pr["position"]) for pr in enqueued] == [
            (2, "testing", 1), (3, "testing", 2), (5, "pending", 3), (4, "pending", 4), (1, "not_ready", None),
        ]  # fmt: skip
        for pull_request in enqueued:
            number = pull_request["prNumber"]
            assert pull_request.keys() == ENQUEUED | (set() if number == 5 else {"usedDefaultPriorityName"})
            whole = await api.pull_request(number)
            assert pull_request == {name: whole[name] for name in pull_request}


@asynchronous
async def test_the_list_of_queues_has_their_problems_and_numbers(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2, 3)
        api.world.set_pull_request(3, draft=True)
        await api.submit(1)
        await api.ask("updateQueue", state="PAUSED")
        await api.submit(2, 3)
        await api.world.queue_actor.submit(HostUnreachable())
        (listed,) = (await api.ask("listQueues"))["queues"]
        assert listed["problems"] == ["The queue cannot reach the repository at git.local"]
        assert listed["pullRequestCounts"] == {"queued": 2, "testing": 1, "notReady": 1}
        read = await api.ask("getQueue")
        assert {name: read[name] for name in listed} == listed
        assert read["nextMerge"] == {"at": None, "note": "the queue is paused"}
        notes = {each["prNumber"]: each["estimateNote"] for each in read["enqueuedPullRequests"]}
        assert notes == {1: "the queue is paused", 2: "it is not queued yet", 3: "it is not queued yet"}


@asynchronous
async def test_a_pull_request_in_a_bisection_says_so(tmp_path: Path):
    async with api_with_queue(tmp_path, batch=True, batchingMinSize=2) as api:
        api.world.open(1, 2)
        await api.submit(1, 2)
        await api.fails(1, 2)
        await api.passes()
        bisected = await api.pull_request(1)
        assert "this pull request is a possible culprit." in bisected["bisectionNote"]
        assert bisected["estimateNote"] == "the queue has not confirmed which pull request is the culprit"


@asynchronous
async def test_a_recreated_queue_has_no_data_of_the_deleted_one(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2)
        await api.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=["a"])
        await api.submit(1)
        run = await api.run(1)
        assert run["impactedTargets"] == ["a"]
        await api.ask("cancelPullRequest", pr={"number": 1})
        deleted = await api.ask("deleteQueue")
        assert deleted == {"deleted": True} | QUEUE
        assert await api.refusal_code("deleteQueue") == "queue_not_found"
        await api.ask("createQueue")
        assert (await api.ask("getQueue"))["enqueuedPullRequests"] == []
        assert await api.refusal_code("getSubmittedPullRequest", pr={"number": 1}) == "pr_not_submitted"
        assert await api.refusal_code("getMergeQueueTestingDetails", testRunId=run["id"]) == "test_run_not_found"
        assert (await api.ask("listPullRequests"))["pullRequests"] == []
        values = {
            sample.value
            for family in text_string_to_metric_families((await api.metrics()).text)
            for sample in family.samples
        }
        assert values == {0}
        await api.submit(2)
        assert "impactedTargets" not in await api.run(2)


@asynchronous
async def test_during_a_mode_switch_the_state_can_change_and_the_mode_cannot(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        switching = await api.ask("updateQueue", mode="parallel")
        assert (switching["state"], switching["mode"]) == ("SWITCHING_MODES", "parallel")
        assert await api.refusal_code("updateQueue", mode="single") == "mode_switch_in_progress"
        await api.ask("updateQueue", mode="parallel", concurrency=7)
        await api.ask("updateQueue", state="PAUSED")
        await api.ask("cancelPullRequest", pr={"number": 1})
        queue = await api.ask("getQueue")
        assert (queue["state"], queue["mode"], queue["concurrency"]) == ("PAUSED", "parallel", 7)


@asynchronous
async def test_a_pause_responds_after_the_push_has_an_outcome(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        async with merge_in_progress(api) as pr:
            pausing = asyncio.create_task(api.call("updateQueue", QUEUE | {"state": "PAUSED"}))
            await api.world.queue_actor.wait_until(lambda queue: queue.is_paused)
            assert not pausing.done()
        assert (await pausing).json()["state"] == "PAUSED"
        assert await api.state(pr["number"]) == "merged"


# The paths outside /v1


@asynchronous
async def test_health_endpoints_report_the_state_of_the_process(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for address in ("/healthz", "/readyz", "/openapi.json", "/docs"):
            assert (await api.client.get(address)).status_code == 200, address
        assert code_of(await api.client.get("/metrics")) == "missing_token"
        metrics = await api.get("/metrics")
        assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert list(text_string_to_metric_families(metrics.text))
        await api.world.store.close()
        api.world.clock.move_to(Instant(api.world.clock.now() + SECOND))  # the last result is used for a second
        assert code_of(await api.client.get("/readyz")) == "storage_unavailable"
        assert (await api.client.get("/healthz")).status_code == 200


# getMergeQueueTestingDetails


@asynchronous
async def test_a_run_is_returned_with_every_field(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2)
        base = api.world.origin.tip("main")
        await api.submit(1, 2)
        first, second = await api.run(1), await api.run(2)
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first["id"])
        assert first["testBranch"] == f"mergeyard/pr-1/{first['id']}"
        assert api.world.origin.tip(first["testBranch"]) == first["testBranchSha"]
        assert (first["baseSha"], second["baseSha"]) == (base, first["testBranchSha"])
        assert (first["dependentPrs"], second["dependentPrs"]) == ([], [1])
        assert (first["checkSuites"], first["statusChecks"], first["isBisection"]) == ([], [], False)
        (tested,) = first["testedPullRequests"]
        assert (tested["prNumber"], tested["title"]) == (1, "Change 1")
        assert tested["prUrl"].startswith(PUBLIC_URL)


@asynchronous
async def test_only_the_latest_status_of_each_context_is_returned(tmp_path: Path):
    async with api_with_queue(tmp_path, requiredStatuses=["unit", "lint"]) as api:
        api.world.open(1)
        await api.submit(1)
        await api.report("pending", 1)
        await api.report("success", 1, url="https://ci.example/7")
        await api.report("error", 1, context="docs")
        docs, unit = (await api.run(1))["statusChecks"]
        assert unit == {"context": "unit", "state": "success", "url": "https://ci.example/7"}
        assert (docs["context"], docs["state"]) == ("docs", "error")
        assert docs["url"].startswith(PUBLIC_URL)
        assert "lint" in (await api.pull_request(1))["reason"]["message"]


@asynchronous
async def test_a_finished_run_can_still_be_read(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        run = await api.run(1)
        await api.passes(1)
        over = await api.ask("getMergeQueueTestingDetails", testRunId=run["id"])
        assert over["status"] == "succeeded"
        assert over["testedPullRequests"] == run["testedPullRequests"]
        await api.ask("reportCommitStatus", sha=over["testBranchSha"], context="unit", state="failure")
        assert (await api.ask("getMergeQueueTestingDetails", testRunId=run["id"]))["status"] == "succeeded"
        for unknown in ("", "x", "-bisection", run["id"] + "-", run["id"].upper(), "../" + run["id"]):
            assert await api.refusal_code("getMergeQueueTestingDetails", testRunId=unknown) == "test_run_not_found"


@asynchronous
async def test_a_bisection_run_is_found_by_its_id_and_by_the_end_of_its_branch(tmp_path: Path):
    async with api_with_queue(tmp_path, batch=True, batchingMinSize=2) as api:
        api.world.open(1, 2)
        await api.submit(1, 2)
        await api.passes(1, 2, context="other")
        await api.fails(1, 2)
        while not (run := await api.run(1))["isBisection"]:
            await api.passes()
        assert run["testBranch"] == f"mergeyard/pr-1/{run['id']}-bisection"
        ending = run["testBranch"].rpartition("/")[2]
        assert await api.ask("getMergeQueueTestingDetails", testRunId=ending) == run


@asynchronous
async def test_a_base_run_is_shown_as_the_run_of_pull_requests_that_wait_for_it(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        await api.fails(1)
        pull_request = await api.pull_request(1)
        assert (pull_request["state"], pull_request["reason"]["code"]) == ("pending_failure", "waiting_for_base")
        base_run = await api.run(1)
        assert (base_run["testedPullRequests"], base_run["dependentPrs"], base_run["status"]) == ([], [], "in_progress")
        await api.passes()
        assert (await api.run(1))["status"] == "failed"
        assert await api.state(1) == "failed"
