"""The endpoints beyond the document: lists, several at once, results of runs, queues, and reports of statuses."""

from pathlib import Path
from typing import Any

import apsw

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope
from tests.contract.api.desk import QUEUE, REPOSITORY, a_desk, problem_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import MINUTE


@asynchronous
async def test_submissions_are_listed_newest_first_page_by_page_one_per_stay(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=1) as desk:
        desk.world.open(1, 2, 3)
        await desk.submit(1, 2, 3)
        await desk.ask("cancelPullRequest", pr={"number": 2})
        await desk.submit(2)
        listed = (await desk.ask("listPullRequests"))["pullRequests"]
        assert [pull["prNumber"] for pull in listed] == [2, 3, 2, 1]
        assert [pull["state"] for pull in listed] == ["pending", "pending", "cancelled", "testing"]
        assert listed[0] == await desk.pull(2)
        page = await desk.ask("listPullRequests", take=3)
        assert [pull["prNumber"] for pull in page["pullRequests"]] == [2, 3, 2]
        rest = await desk.ask("listPullRequests", take=3, cursor=page["nextCursor"])
        assert [pull["prNumber"] for pull in rest["pullRequests"]] == [1]
        assert "nextCursor" not in rest
        assert "nextCursor" not in await desk.ask("listPullRequests", take=4)


@asynchronous
async def test_submissions_are_chosen_by_state_and_time(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=1) as desk:
        desk.world.open(1, 2, 3)
        await desk.submit(1, 2)
        await desk.let_pass(MINUTE)
        await desk.submit(3)

        async def chosen(**filters: object) -> list[int]:
            return [pull["prNumber"] for pull in (await desk.ask("listPullRequests", **filters))["pullRequests"]]

        assert await chosen(state="pending") == [3, 2]
        assert await chosen(state="TESTING") == [1]
        assert await chosen(state="merged") == []
        assert await chosen(since="2023-11-14T22:14:20Z") == [3]
        assert await chosen(until="2023-11-14T23:14:20.000+01:00") == [2, 1]
        assert await chosen(since="2023-11-14T22:13:20.000Z", until="2023-11-14T22:14:20Z", state="pending") == [2]
        assert await chosen(since="2024-01-01T00:00:00Z") == []


NONSENSE: list[dict[str, object]] = [
    {"take": 0}, {"take": 101}, {"take": "x"}, {"take": True}, {"cursor": ""}, {"cursor": "x"}, {"cursor": 1},
    {"cursor": "-1"}, {"cursor": "9" * 30}, {"state": "gone"}, {"since": "yesterday"}, {"since": 1},
    {"since": "2023-11-14T22:14:20"}, {"until": None}, {"until": "2023-13-14T22:14:20Z"},
]  # fmt: skip


@asynchronous
async def test_a_filter_that_makes_no_sense_is_refused(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for filters in NONSENSE:
            assert await desk.refuses("listPullRequests", **filters) == "invalid_request", filters


@asynchronous
async def test_several_are_read_at_once_and_the_missing_named(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1, 2)
        await desk.submit(1, 2)
        prs = [{"number": 2}, {"number": "7"}, {"number": 1}, {"number": 2}]
        several = await desk.ask("getSubmittedPullRequests", prs=prs)
        assert several["pullRequests"] == [await desk.pull(2), await desk.pull(1)]
        assert several["notFound"] == [7]
        fifty = [{"number": number} for number in range(1, 52)]
        assert len((await desk.ask("getSubmittedPullRequests", prs=fifty[:50]))["notFound"]) == 48
        assert await desk.refuses("getSubmittedPullRequests", prs=fifty) == "invalid_request"
        assert await desk.ask("getSubmittedPullRequests", prs=[]) == {"pullRequests": [], "notFound": []}


@asynchronous
async def test_results_of_runs_are_listed_with_their_times(tmp_path: Path):
    async with a_desk(tmp_path, batch=True, batchingMinSize=2) as desk:
        desk.world.open(1, 2, 3)
        await desk.submit(1, 2)
        run = await desk.run(1)
        await desk.let_pass(MINUTE)
        await desk.passes(1, 2)
        await desk.submit(3)
        told = await desk.ask("listMergeQueueTestingResults", since="2023-11-14T00:00:00Z")
        assert told["totalItems"] == 2
        assert told["testingResults"] == [
            {
                "prNumber": number,
                "testRunId": run["id"],
                "status": "succeeded",
                "isBisection": False,
                "startedAt": "2023-11-14T22:13:20.000Z",
                "finishedAt": "2023-11-14T22:14:20.000Z",
                "durationSeconds": 60,
            }
            for number in (1, 2)
        ]
        since = "2023-11-14T00:00:00Z"
        second = await desk.ask("listMergeQueueTestingResults", since=since, offset=1, take=1)
        assert [result["prNumber"] for result in second["testingResults"]] == [2]
        assert second["totalItems"] == 2
        early = await desk.ask("listMergeQueueTestingResults", since=since, until="2023-11-14T22:14:00Z")
        assert early == {"testingResults": [], "totalItems": 0}
        assert await desk.refuses("listMergeQueueTestingResults") == "invalid_request"
        assert await desk.refuses("listMergeQueueTestingResults", since=since, offset=-1) == "invalid_request"


@asynchronous
async def test_queues_are_listed_as_far_as_the_token_sees(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        Origin.made(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        other = QUEUE | {"repo": REPOSITORY | {"name": "other"}}
        await desk.ask("createQueue", **other)
        everything = await desk.ask("listQueues")
        assert [queue["repo"]["name"] for queue in everything["queues"]] == ["app", "other"]
        shown = await desk.ask("getQueue", **other)
        del shown["enqueuedPullRequests"]
        token = await desk.token(Scope.READ, repos=[Repo("git.local", "acme", "other")])
        assert await desk.ask("listQueues", token=token) == {"queues": [shown]}


@asynchronous
async def test_a_status_is_accepted_also_when_nobody_is_interested(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        report = {"sha": "1" * 40, "context": "unit", "description": "All is well", "url": "https://ci.example/1"}
        for state in ("pending", "success", "failure", "ERROR"):
            assert await desk.ask("reportCommitStatus", **report, state=state) == {"accepted": True}
        unknown = REPOSITORY | {"name": "unknown"}
        assert await desk.refuses("reportCommitStatus", **report, state="success", repo=unknown) == (
            "repository_not_found"
        )


@asynchronous
async def test_a_status_that_makes_no_sense_is_refused(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        report = {"sha": "1" * 40, "context": "unit", "state": "success"}
        for wrong in (
            {"sha": "1" * 39}, {"sha": "x" * 40}, {"sha": None}, {"context": ""}, {"context": "x" * 256},
            {"state": "passed"}, {"state": None}, {"url": 1}, {"description": ["x"]},
        ):  # fmt: skip
            assert await desk.refuses("reportCommitStatus", **report | wrong) == "invalid_request", wrong
        for url in ("javascript:alert(1)", "data:text/html,x", " https://ci.example", "//ci.example"):
            refused = await desk.post("reportCommitStatus", **report, url=url)
            problem = problem_of(refused)
            assert (problem["code"], [flaw["pointer"] for flaw in problem["errors"]]) == ("invalid_request", ["/url"])
        for url in ("https://ci.example/1", "HTTP://ci.example", ""):
            await desk.ask("reportCommitStatus", **report, url=url)


@asynchronous
async def test_who_submits_may_not_call_its_own_tests_green(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        report = {"sha": "1" * 40, "context": "unit", "state": "success"}
        token = await desk.token(*DEFAULT_SCOPES)
        assert await desk.refuses("reportCommitStatus", token=token, **report) == "insufficient_scope"
        await desk.ask("reportCommitStatus", token=await desk.token(Scope.STATUS), **report)


@asynchronous
async def test_a_status_that_comes_before_its_run_is_known_counts(tmp_path: Path):
    """CI may be quicker than the service is with its own news."""
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        tip = desk.world.run_of(1).tip
        await desk.ask("reportCommitStatus", sha=tip.upper(), context="unit", state="Success")
        assert await desk.state(1) == "merged"


@asynchronous
async def test_a_page_of_results_decodes_no_run_outside_of_the_page(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        await desk.passes(1)
        queue, since = desk.world.keeper.id, "2023-11-14T00:00:00Z"
        whole = await desk.ask("listMergeQueueTestingResults", since=since)
        database: Any = apsw.Connection(str(desk.world.folder / "data" / "mergeyard.db"))
        database.execute(
            "WITH RECURSIVE counted (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counted WHERE value < 3000) "
            "INSERT INTO runs (queue, id, status, tested, started_at, decided_at, ended_at, live, body) "
            "SELECT ?, 'broken ' || value, 'succeeded', 2, 1, decided_at - value, 1, 0, x'00' "
            "FROM runs, counted",
            (queue,),
        )
        database.close()
        page = await desk.ask("listMergeQueueTestingResults", since=since, take=1)
        assert page == {"testingResults": whole["testingResults"], "totalItems": 6001}
