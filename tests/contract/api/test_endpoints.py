"""What is asked about queues and runs: request, answer, refusals and repeats, as the contract's table has them."""

import asyncio
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.contract.api.desk import PUBLIC_URL, QUEUE, REPOSITORY, a_desk, an_empty_desk, code_of
from tests.contract.api.provocations import a_merge_under_way
from tests.contract.api.settings_table import DEFAULTS
from tests.support.asynchronous import asynchronous

ENQUEUED = {
    "id", "state", "stateChangedAt", "priorityValue", "priorityName", "skipTheLine", "noBatch", "prNumber", "prTitle",
    "prSha", "prBaseBranch", "prAuthor", "testRunId", "position", "reason",
}  # fmt: skip
A_QUEUE = {"state", "branch", "repo", *DEFAULTS}


# createQueue, getQueue, updateQueue, deleteQueue


@asynchronous
async def test_a_queue_is_told_with_every_setting(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        created = await desk.ask("createQueue")
        assert created.keys() - {"enqueuedPullRequests"} == A_QUEUE
        assert created | {"enqueuedPullRequests": []} == await desk.ask("getQueue")
        assert (created["state"], created["branch"], created["repo"]) == ("RUNNING", "main", REPOSITORY)
        assert (await desk.ask("updateQueue")).keys() == A_QUEUE


@asynchronous
async def test_one_branch_never_has_two_queues(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        assert await desk.refuses("createQueue") == "queue_already_exists"
        assert await desk.refuses("createQueue", repo=REPOSITORY | {"host": "GIT.Local"}) == "queue_already_exists"
        again = await asyncio.gather(*(desk.call("createQueue", QUEUE | {"targetBranch": "other"}) for _ in range(3)))
        assert {response.json()["code"] for response in again} == {"branch_not_found"}


@asynchronous
async def test_two_that_create_the_same_queue_at_once_make_one(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        answers = await asyncio.gather(*(desk.call("createQueue", QUEUE) for _ in range(3)))
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409]


@asynchronous
async def test_enqueued_pull_requests_stand_in_order_the_not_ready_last(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=2) as desk:
        desk.world.open(1, 2, 3, 4, 5)
        desk.world.set_pull(1, draft=True)
        await desk.submit(1, 2, 3, 4)
        await desk.submit(5, priority="high")
        enqueued = (await desk.ask("getQueue"))["enqueuedPullRequests"]
        assert [(pull["prNumber"], pull["state"], pull["position"]) for pull in enqueued] == [
            (2, "testing", 1), (3, "testing", 2), (5, "pending", 3), (4, "pending", 4), (1, "not_ready", None),
        ]  # fmt: skip
        for pull in enqueued:
            assert pull.keys() == ENQUEUED
            whole = await desk.pull(pull["prNumber"])
            assert pull == {name: whole[name] for name in ENQUEUED}


@asynchronous
async def test_a_queue_made_again_knows_nothing_of_the_old_one(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2)
        await desk.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=["a"])
        await desk.submit(1)
        run = await desk.run(1)
        assert run["impactedTargets"] == ["a"]
        await desk.ask("cancelPullRequest", pr={"number": 1})
        deleted = await desk.ask("deleteQueue")
        assert deleted == {"deleted": True} | QUEUE
        assert await desk.refuses("deleteQueue") == "queue_not_found"
        await desk.ask("createQueue")
        assert (await desk.ask("getQueue"))["enqueuedPullRequests"] == []
        assert await desk.refuses("getSubmittedPullRequest", pr={"number": 1}) == "pr_not_submitted"
        assert await desk.refuses("getMergeQueueTestingDetails", testRunId=run["id"]) == "test_run_not_found"
        assert (await desk.ask("listPullRequests"))["pullRequests"] == []
        values = {
            sample.value
            for family in text_string_to_metric_families((await desk.metrics()).text)
            for sample in family.samples
        }
        assert values == {0}
        await desk.submit(2)
        assert "impactedTargets" not in await desk.run(2)


@asynchronous
async def test_while_modes_switch_the_state_may_change_and_the_mode_may_not(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        switching = await desk.ask("updateQueue", mode="parallel")
        assert (switching["state"], switching["mode"]) == ("SWITCHING_MODES", "parallel")
        assert await desk.refuses("updateQueue", mode="single") == "mode_switch_in_progress"
        await desk.ask("updateQueue", mode="parallel", concurrency=7)
        await desk.ask("updateQueue", state="PAUSED")
        await desk.ask("cancelPullRequest", pr={"number": 1})
        queue = await desk.ask("getQueue")
        assert (queue["state"], queue["mode"], queue["concurrency"]) == ("PAUSED", "parallel", 7)


@asynchronous
async def test_paused_is_answered_when_the_push_has_its_outcome(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        async with a_merge_under_way(desk) as pr:
            pausing = asyncio.create_task(desk.call("updateQueue", QUEUE | {"state": "PAUSED"}))
            await desk.world.keeper.until(lambda queue: queue.paused)
            assert not pausing.done()
        assert (await pausing).json()["state"] == "PAUSED"
        assert await desk.state(pr["number"]) == "merged"


# The addresses beside /v1


@asynchronous
async def test_the_process_tells_how_it_is(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for address in ("/healthz", "/readyz", "/openapi.json", "/docs"):
            assert (await desk.client.get(address)).status_code == 200, address
        assert code_of(await desk.client.get("/metrics")) == "missing_token"
        metrics = await desk.get("/metrics")
        assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert list(text_string_to_metric_families(metrics.text))
        await desk.world.store.close()
        assert code_of(await desk.client.get("/readyz")) == "storage_unavailable"
        assert (await desk.client.get("/healthz")).status_code == 200


# getMergeQueueTestingDetails


@asynchronous
async def test_a_run_is_told_whole(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2)
        base = desk.world.origin.tip("main")
        await desk.submit(1, 2)
        first, second = await desk.run(1), await desk.run(2)
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first["id"])
        assert first["testBranch"] == f"mergeyard/pr-1/{first['id']}"
        assert desk.world.origin.tip(first["testBranch"]) == first["testBranchSha"]
        assert (first["baseSha"], second["baseSha"]) == (base, first["testBranchSha"])
        assert (first["dependentPrs"], second["dependentPrs"]) == ([], [1])
        assert (first["checkSuites"], first["statusChecks"], first["isBisection"]) == ([], [], False)
        (tested,) = first["testedPullRequests"]
        assert (tested["prNumber"], tested["title"]) == (1, "Change 1")
        assert tested["prUrl"].startswith(PUBLIC_URL)


@asynchronous
async def test_one_status_is_told_per_context_the_latest(tmp_path: Path):
    async with a_desk(tmp_path, requiredStatuses=["unit", "lint"]) as desk:
        desk.world.open(1)
        await desk.submit(1)
        await desk.says("pending", 1)
        await desk.says("success", 1, url="https://ci.example/7")
        await desk.says("error", 1, context="docs")
        docs, unit = (await desk.run(1))["statusChecks"]
        assert unit == {"context": "unit", "state": "success", "url": "https://ci.example/7"}
        assert (docs["context"], docs["state"]) == ("docs", "error")
        assert docs["url"].startswith(PUBLIC_URL)
        assert "lint" in (await desk.pull(1))["reason"]["message"]


@asynchronous
async def test_a_run_stays_readable_when_it_is_over(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        run = await desk.run(1)
        await desk.passes(1)
        over = await desk.ask("getMergeQueueTestingDetails", testRunId=run["id"])
        assert over["status"] == "succeeded"
        assert over["testedPullRequests"] == run["testedPullRequests"]
        await desk.ask("reportCommitStatus", sha=over["testBranchSha"], context="unit", state="failure")
        assert (await desk.ask("getMergeQueueTestingDetails", testRunId=run["id"]))["status"] == "succeeded"
        for unknown in ("", "x", "-bisection", run["id"] + "-", run["id"].upper(), "../" + run["id"]):
            assert await desk.refuses("getMergeQueueTestingDetails", testRunId=unknown) == "test_run_not_found"


@asynchronous
async def test_a_bisection_run_is_found_by_its_id_and_by_the_end_of_its_branch(tmp_path: Path):
    async with a_desk(tmp_path, batch=True, batchingMinSize=2) as desk:
        desk.world.open(1, 2)
        await desk.submit(1, 2)
        await desk.passes(1, 2, context="other")
        await desk.fails(1, 2)
        while not (run := await desk.run(1))["isBisection"]:
            await desk.passes()
        assert run["testBranch"] == f"mergeyard/pr-1/{run['id']}-bisection"
        ending = run["testBranch"].rpartition("/")[2]
        assert await desk.ask("getMergeQueueTestingDetails", testRunId=ending) == run


@asynchronous
async def test_a_bare_run_tests_the_target_itself_and_is_the_run_of_those_who_wait_for_it(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        await desk.fails(1)
        pull = await desk.pull(1)
        assert (pull["state"], pull["reason"]["code"]) == ("pending_failure", "waiting_for_base")
        bare = await desk.run(1)
        assert (bare["testedPullRequests"], bare["dependentPrs"], bare["status"]) == ([], [], "in_progress")
        await desk.passes()
        assert (await desk.run(1))["status"] == "failed"
        assert await desk.state(1) == "failed"
