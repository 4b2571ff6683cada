"""Lists of submissions, runs and queues, reads of several pull requests, and status reports."""

from pathlib import Path
from typing import Any

import apsw

from mergeyard.domain.access import DEFAULT_SCOPES, Scope
from mergeyard.domain.ids import Repo
from tests.contract.api.harness import QUEUE, REPOSITORY, api_with_queue, problem_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import MINUTE


@asynchronous
async def test_submissions_are_listed_newest_first_page_by_page(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2, 3)
        await api.submit(1, 2, 3)
        await api.ask("cancelPullRequest", pr={"number": 2})
        await api.submit(2)
        listed = (await api.ask("listPullRequests"))["pullRequests"]
        assert [pull_request["prNumber"] for pull_request in listed] == [2, 3, 2, 1]
        assert [pull_request["state"] for pull_request in listed] == ["pending", "pending", "cancelled", "testing"]
        assert listed[0] == await api.pull_request(2)
        page = await api.ask("listPullRequests", take=3)
        assert [pull_request["prNumber"] for pull_request in page["pullRequests"]] == [2, 3, 2]
        rest = await api.ask("listPullRequests", take=3, cursor=page["nextCursor"])
        assert [pull_request["prNumber"] for pull_request in rest["pullRequests"]] == [1]
        assert "nextCursor" not in rest
        assert "nextCursor" not in await api.ask("listPullRequests", take=4)


@asynchronous
async def test_submissions_are_filtered_by_state_and_time(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=1) as api:
        api.world.open(1, 2, 3)
        await api.submit(1, 2)
        await api.advance(MINUTE)
        await api.submit(3)

        async def chosen(**filters: object) -> list[int]:
            return [
                pull_request["prNumber"]
                for pull_request in (await api.ask("listPullRequests", **filters))["pullRequests"]
            ]

        assert await chosen(state="pending") == [3, 2]
        assert await chosen(state="TESTING") == [1]
        assert await chosen(state="merged") == []
        assert await chosen(since="2023-11-14T22:14:20Z") == [3]
        assert await chosen(until="2023-11-14T23:14:20.000+01:00") == [2, 1]
        assert await chosen(since="2023-11-14T22:13:20.000Z", until="2023-11-14T22:14:20Z", state="pending") == [2]
        assert await chosen(since="2024-01-01T00:00:00Z") == []


@asynchronous
async def test_submissions_are_filtered_by_their_end_page_by_page(tmp_path: Path):
    """The first submission ends last, and the one that is in the queue has no end."""
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2, 3, 4)
        await api.submit(1, 2, 3, 4)
        await api.ask("cancelPullRequest", pr={"number": 3})
        await api.advance(MINUTE)
        await api.ask("cancelPullRequest", pr={"number": 2})
        await api.passes(1)

        async def chosen(**filters: object) -> list[int]:
            page = await api.ask("listPullRequests", **filters)
            return [pull_request["prNumber"] for pull_request in page["pullRequests"]]

        assert await chosen(concludedSince="2023-11-14T22:13:20Z") == [3, 2, 1]
        assert await chosen(concludedSince="2023-11-14T22:13:20.001Z") == [2, 1]
        assert await chosen(concludedSince="2023-11-14T22:14:20Z", state="merged") == [1]
        assert await chosen(concludedSince="2023-11-14T22:14:20Z", since="2023-11-14T22:14:20Z") == []
        assert await chosen(concludedSince="2023-11-14T22:14:20.001Z") == []
        first = await api.ask("listPullRequests", concludedSince="2023-11-14T22:13:20Z", take=2)
        assert [pull_request["prNumber"] for pull_request in first["pullRequests"]] == [3, 2]
        rest = await api.ask("listPullRequests", concludedSince="2023-11-14T22:13:20Z", cursor=first["nextCursor"])
        assert [pull_request["prNumber"] for pull_request in rest["pullRequests"]] == [1]
        assert "nextCursor" not in rest


INVALID: list[dict[str, object]] = [
    {"take": 0}, {"take": 101}, {"take": "x"}, {"take": True}, {"cursor": ""}, {"cursor": "x"}, {"cursor": 1},
    {"cursor": "-1"}, {"cursor": "9" * 30}, {"state": "gone"}, {"since": "yesterday"}, {"since": 1},
    {"since": "2023-11-14T22:14:20"}, {"until": None}, {"until": "2023-13-14T22:14:20Z"},
    {"concludedSince": None}, {"concludedSince": "yesterday"}, {"concludedSince": 1},
]  # fmt: skip


@asynchronous
async def test_an_invalid_filter_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for filters in INVALID:
            assert await api.refusal_code("listPullRequests", **filters) == "invalid_request", filters


@asynchronous
async def test_several_pull_requests_are_read_at_once_and_missing_ones_named(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1, 2)
        await api.submit(1, 2)
        prs = [{"number": 2}, {"number": "7"}, {"number": 1}, {"number": 2}]
        several = await api.ask("getSubmittedPullRequests", prs=prs)
        assert several["pullRequests"] == [await api.pull_request(2), await api.pull_request(1)]
        assert several["notFound"] == [7]
        fifty = [{"number": number} for number in range(1, 52)]
        assert len((await api.ask("getSubmittedPullRequests", prs=fifty[:50]))["notFound"]) == 48
        assert await api.refusal_code("getSubmittedPullRequests", prs=fifty) == "invalid_request"
        assert await api.ask("getSubmittedPullRequests", prs=[]) == {"pullRequests": [], "notFound": []}


@asynchronous
async def test_results_of_runs_are_listed_with_their_times(tmp_path: Path):
    async with api_with_queue(tmp_path, batch=True, batchingMinSize=2) as api:
        api.world.open(1, 2, 3)
        await api.submit(1, 2)
        run = await api.run(1)
        await api.advance(MINUTE)
        await api.passes(1, 2)
        await api.submit(3)
        response = await api.ask("listMergeQueueTestingResults", since="2023-11-14T00:00:00Z")
        assert response["totalItems"] == 2
        assert response["testingResults"] == [
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
        second = await api.ask("listMergeQueueTestingResults", since=since, offset=1, take=1)
        assert [result["prNumber"] for result in second["testingResults"]] == [2]
        assert second["totalItems"] == 2
        early = await api.ask("listMergeQueueTestingResults", since=since, until="2023-11-14T22:14:00Z")
        assert early == {"testingResults": [], "totalItems": 0}
        assert await api.refusal_code("listMergeQueueTestingResults") == "invalid_request"
        assert await api.refusal_code("listMergeQueueTestingResults", since=since, offset=-1) == "invalid_request"


@asynchronous
async def test_only_queues_that_the_token_can_see_are_listed(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        Origin.create(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        other = QUEUE | {"repo": REPOSITORY | {"name": "other"}}
        await api.ask("createQueue", **other)
        everything = await api.ask("listQueues")
        assert [queue["repo"]["name"] for queue in everything["queues"]] == ["app", "other"]
        returned = await api.ask("getQueue", **other)
        for name in ("enqueuedPullRequests", "nextMerge"):
            del returned[name]
        token = await api.token(Scope.READ, repos=[Repo("git.local", "acme", "other")])
        assert await api.ask("listQueues", token=token) == {"queues": [returned]}


@asynchronous
async def test_a_status_is_accepted_even_if_no_run_needs_it(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        report = {"sha": "1" * 40, "context": "unit", "description": "All is well", "url": "https://ci.example/1"}
        for state in ("pending", "success", "failure", "ERROR"):
            assert await api.ask("reportCommitStatus", **report, state=state) == {"accepted": True}
        unknown = REPOSITORY | {"name": "unknown"}
        assert await api.refusal_code("reportCommitStatus", **report, state="success", repo=unknown) == (
            "repository_not_found"
        )


@asynchronous
async def test_an_invalid_status_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        report = {"sha": "1" * 40, "context": "unit", "state": "success"}
        for wrong in (
            {"sha": "1" * 39}, {"sha": "x" * 40}, {"sha": None}, {"context": ""}, {"context": "x" * 256},
            {"state": "passed"}, {"state": None}, {"url": 1}, {"description": ["x"]},
        ):  # fmt: skip
            assert await api.refusal_code("reportCommitStatus", **report | wrong) == "invalid_request", wrong
        for url in ("javascript:alert(1)", "data:text/html,x", " https://ci.example", "//ci.example"):
            refused = await api.post("reportCommitStatus", **report, url=url)
            problem = problem_of(refused)
            assert (problem["code"], [flaw["pointer"] for flaw in problem["errors"]]) == ("invalid_request", ["/url"])
        for url in ("https://ci.example/1", "HTTP://ci.example", ""):
            await api.ask("reportCommitStatus", **report, url=url)


@asynchronous
async def test_a_token_with_submit_scope_cannot_report_statuses(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        report = {"sha": "1" * 40, "context": "unit", "state": "success"}
        token = await api.token(*DEFAULT_SCOPES)
        assert await api.refusal_code("reportCommitStatus", token=token, **report) == "insufficient_scope"
        await api.ask("reportCommitStatus", token=await api.token(Scope.STATUS), **report)


@asynchronous
async def test_a_status_that_comes_before_its_run_is_known_counts(tmp_path: Path):
    """CI can report before the service has recorded its own run."""
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        tip = api.world.run_of(1).tip
        await api.ask("reportCommitStatus", sha=tip.upper(), context="unit", state="Success")
        assert await api.state(1) == "merged"


@asynchronous
async def test_a_page_of_results_decodes_no_run_outside_of_the_page(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        await api.passes(1)
        queue, since = api.world.queue_actor.id, "2023-11-14T00:00:00Z"
        whole = await api.ask("listMergeQueueTestingResults", since=since)
        database: Any = apsw.Connection(str(api.world.folder / "data" / "mergeyard.db"))
        database.execute(
            "WITH RECURSIVE counted (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counted WHERE value < 3000) "
            "INSERT INTO runs (queue, id, status, tested_count, started_at, decided_at, ended_at, live, body) "
            "SELECT ?, 'broken ' || value, 'succeeded', 2, 1, decided_at - value, 1, 0, x'00' "
            "FROM runs, counted",
            (queue,),
        )
        database.close()
        page = await api.ask("listMergeQueueTestingResults", since=since, take=1)
        assert page == {"testingResults": whole["testingResults"], "totalItems": 6001}
