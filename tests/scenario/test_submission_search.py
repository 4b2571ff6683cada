"""The search in all pull requests that a token can see, and the runs of one submission."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.access import Token
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, SubmissionId
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.service import submission_queries
from mergeyard.service.submission_queries import StateFilter, SubmissionPage, SubmissionSearch
from mergeyard.service.submissions import SubmitOptions
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, Scenario, a_scenario

ALL_REPOSITORIES = Token(id="all", name="ann", digest=b"", created_at=Instant(0))


async def search(scenario: Scenario, token: Token = ALL_REPOSITORIES, **asked: Any) -> SubmissionPage:
    return await scenario.service.submission_queries.search(token, SubmissionSearch(**asked))


async def numbers(scenario: Scenario, **asked: Any) -> list[int]:
    return [row.view.submission.number for row in (await search(scenario, **asked)).rows]


async def a_used_queue(scenario: Scenario) -> None:
    """1 merged, then 2 failed; 3 is under test, 4 waits, 5 is a draft."""
    scenario.open(1, 2, 3, 4, 5)
    scenario.set_pull_request(3, title="Speed up Ünicode search of 2024", author="Grace")
    scenario.set_pull_request(5, draft=True)
    await scenario.submit(1)
    await scenario.passes(1)
    await scenario.advance_time(MINUTE)
    await scenario.submit(2)
    await scenario.fails(2)
    await scenario.submit(3, 4, 5)


@pytest.mark.long
@asynchronous
async def test_open_pull_requests_come_first_in_their_order_and_then_the_last_ended(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        await a_used_queue(scenario)
        page = await search(scenario)
        assert [row.view.submission.number for row in page.rows] == [3, 4, 5, 2, 1]
        assert [row.view.position for row in page.rows] == [1, 2, None, None, None]
        assert (page.total, page.has_more, page.is_limited) == (5, False, False)
        assert {row.key for row in page.rows} == {KEY}


@asynchronous
async def test_each_filter_selects(tmp_path: Path):
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({"state": StateFilter.OPEN}, [3, 4, 5]),
        ({"state": StateFilter.TESTING}, [3]),
        ({"state": StateFilter.WAITING}, [4]),
        ({"state": StateFilter.NOT_READY}, [5]),
        ({"state": StateFilter.FINISHED}, [2, 1]),
        ({"state": StateFilter.MERGED}, [1]),
        ({"state": StateFilter.FAILED}, [2]),
        ({"state": StateFilter.CANCELLED}, []),
        ({"text": "#2"}, [2]),
        ({"text": "4"}, [4]),
        ({"text": "2024"}, [3]),
        ({"text": "#20"}, []),
        ({"text": " SPEED up ünicode "}, [3]),
        ({"text": "grac"}, [3]),
        ({"text": "no such title"}, []),
        ({"author": "grace"}, [3]),
        ({"author": "grac"}, []),
        ({"queue": KEY, "text": "2"}, [2]),
        ({"offset": 1, "take": 3}, [4, 5, 2]),
        ({"offset": 4}, [1]),
    ]
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        await a_used_queue(scenario)
        assert [(asked, await numbers(scenario, **asked)) for asked, _ in expected] == expected
        merged_at = (await scenario.submission(1)).state_changed_at
        assert await numbers(scenario, since=Instant(merged_at + 1)) == [3, 4, 5, 2]
        assert await numbers(scenario, until=Instant(merged_at + 1)) == [1]


@asynchronous
async def test_a_pull_request_is_found_by_its_head_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        branch = (await scenario.submission(2)).pull_request.head_branch
        assert await numbers(scenario, text=branch.upper()) == [2]


@pytest.mark.long
@asynchronous
async def test_a_page_tells_whether_there_are_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario:
        await a_used_queue(scenario)
        open_only = await search(scenario, state=StateFilter.OPEN, take=2)
        assert (open_only.has_more, open_only.total) == (True, 3)
        first = await search(scenario, take=4)
        assert (first.has_more, first.total) == (True, None)
        monkeypatch.setattr(submission_queries, "SCANNED_AT_ONCE", 1)
        assert await numbers(scenario) == [3, 4, 5, 2, 1]
        monkeypatch.setattr(submission_queries, "MAX_SCANNED", 1)
        limited = await search(scenario)
        assert ([row.view.submission.number for row in limited.rows], limited.is_limited) == ([3, 4, 5, 2], True)


@asynchronous
async def test_a_ready_pull_request_waits_while_the_queue_is_paused(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        scenario.set_pull_request(2, draft=True)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(1, 2)
        assert await numbers(scenario, state=StateFilter.WAITING) == [1]
        assert await numbers(scenario, state=StateFilter.NOT_READY) == [2]


@asynchronous
async def test_a_token_finds_only_what_it_can_see_in_all_its_queues(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.branch("release", base="main", files={})
        release = QueueKey(KEY.repo, "release")
        await scenario.create_queue(Config(required_statuses=("unit",)), release)
        scenario.open(1)
        scenario.open(2, base="release")
        await scenario.submit(1)
        await scenario.service.submissions.submit(scenario.build_command(2, release), SubmitOptions())
        await scenario.wait_until_idle()
        assert await numbers(scenario) == [1, 2]
        other = replace(ALL_REPOSITORIES, repos=frozenset({Repo("git.local", "acme", "other")}))
        assert (await search(scenario, token=other)).rows == []


@asynchronous
async def test_every_run_that_tested_a_submission_is_listed_with_the_one_that_decided(tmp_path: Path):
    """In a bisection the prefixes run side by side, and the timeline names only one run at a time."""
    config = Config(batch=True, batching_min_size=4, bisection_concurrency=3)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1, 2, 3, 4)
        await scenario.fails(1, 2, 3, 4)
        await scenario.passes()
        await scenario.fails(1, 2, 3)
        await scenario.passes(1, 2)
        await scenario.passes(1, 2)
        await scenario.passes(4)
        details = await scenario.service.pull_request_details.read(KEY, PullRequestNumber(1))
        results = [
            (tuple(int(member.number) for member in each.run.tested_members), each.run.status) for each in details.runs
        ]
        assert results[0] == ((1, 2), RunStatus.SUCCEEDED)
        assert set(results[1:]) == {
            ((1, 2), RunStatus.SUCCEEDED),
            ((1, 2, 3), RunStatus.FAILED),
            ((1,), RunStatus.CANCELLED),
            ((1, 2, 3, 4), RunStatus.FAILED),
        }
        assert details.view.submission.merged_sha is not None
        assert details.deciding_run == details.runs[0].run.id


@asynchronous
async def test_a_passed_run_behind_is_listed_only_if_it_decided(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        behind = scenario.queue_actor.queue.submissions[SubmissionId(2)].run
        details = await scenario.service.pull_request_details.read(KEY, PullRequestNumber(1))
        assert behind not in [each.run.id for each in details.runs]
        await scenario.update(can_optimistically_merge=True)
        await scenario.wait_until_idle()
        details = await scenario.service.pull_request_details.read(KEY, PullRequestNumber(1))
        assert details.deciding_run == behind
        assert behind in [each.run.id for each in details.runs]
