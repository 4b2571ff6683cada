"""What the service may expect of every host."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.ports.host import HostTrouble
from tests.contract.host.stage import ONE, TWO, Stage
from tests.support.asynchronous import asynchronous

ELSEWHERE = "elsewhere"


@asynchronous
async def test_a_pull_request_is_shown_with_all_that_the_queue_needs(stage: Stage):
    head = stage.open(1, title="Add a page", author="grace")
    async with stage.host() as host:
        pull = await host.pull(stage.repo, ONE)
        assert pull
        assert replace(pull, mergeability=Mergeability.UNKNOWN) == PullRequest(
            number=ONE, head=head, base="main", branch="topic-1", title="Add a page", author="grace"
        )


@asynchronous
async def test_a_pull_request_that_does_not_exist_is_none(stage: Stage):
    stage.open(1)
    async with stage.host() as host:
        assert await host.pull(stage.repo, TWO) is None


@asynchronous
async def test_a_draft_and_another_base_are_seen(stage: Stage):
    stage.open(1, draft=True, base="release")
    async with stage.host() as host:
        pull = await host.pull(stage.repo, ONE)
        assert pull
        assert (pull.draft, pull.base) == (True, "release")


@asynchronous
async def test_a_push_made_a_moment_ago_is_seen(stage: Stage):
    stage.open(1)
    async with stage.host() as host:
        for _ in range(3):
            pushed = stage.push(1)
            pull = await host.pull(stage.repo, ONE)
            assert pull
            assert pull.head == pushed


@asynchronous
async def test_a_closed_pull_request_is_not_open_and_merged_nowhere(stage: Stage):
    stage.open(1)
    stage.close(1)
    async with stage.host() as host:
        pull = await host.pull(stage.repo, ONE)
        assert pull
        assert (pull.is_open, pull.merged_into) == (False, None)


@asynchronous
async def test_one_marked_as_merged_is_merged_into_its_base(stage: Stage):
    head = stage.open(1)
    landed = stage.land(1)
    async with stage.host() as host:
        await host.mark_merged(stage.repo, ONE, head, landed)
        pull = await host.pull(stage.repo, ONE)
        assert pull
        assert (pull.is_open, pull.merged_into) == (False, "main")


@asynchronous
async def test_marking_it_as_merged_again_changes_nothing(stage: Stage):
    head = stage.open(1)
    landed = stage.land(1)
    async with stage.host() as host:
        await host.mark_merged(stage.repo, ONE, head, landed)
        once = await host.refs(stage.repo, ["main"])
        await host.mark_merged(stage.repo, ONE, head, landed)
        assert await host.refs(stage.repo, ["main"]) == once


@asynchronous
async def test_what_changes_between_two_readings_of_the_refs_names_the_pull_request(stage: Stage):
    stage.open(1)
    stage.open(2)
    async with stage.host() as host:
        before = await host.refs(stage.repo, ["main"])
        stage.push(2)
        pushed = await host.refs(stage.repo, ["main"])
        assert {host.number_of(ref) for ref, _ in pushed.items() - before.items()} - {None} == {TWO}
        stage.close(1)
        closed = await host.refs(stage.repo, ["main"])
        assert {host.number_of(ref) for ref, _ in closed.items() - pushed.items()} == {ONE}


@asynchronous
async def test_the_head_ref_of_a_pull_request_is_among_the_refs(stage: Stage):
    head = stage.open(1)
    async with stage.host() as host:
        assert (await host.refs(stage.repo, ["main"]))[host.head_ref(ONE)] == head


@asynchronous
async def test_a_branch_is_no_pull_request(stage: Stage):
    async with stage.host() as host:
        assert "refs/heads/main" in await host.refs(stage.repo, ["main"])
        assert host.number_of("refs/heads/main") is None


@asynchronous
async def test_a_repository_that_nobody_can_see_is_trouble_and_not_an_empty_one(stage: Stage):
    gone = replace(stage.repo, name=ELSEWHERE)
    async with stage.host() as host:
        with pytest.raises(HostTrouble):
            await host.pull(gone, ONE)
        with pytest.raises(HostTrouble):
            await host.refs(gone, ["main"])


@asynchronous
async def test_it_knows_its_repositories_and_no_others(stage: Stage):
    async with stage.host() as host:
        assert await host.knows(stage.repo)
        assert not await host.knows(replace(stage.repo, name=ELSEWHERE))
        assert not await host.knows(replace(stage.repo, owner=ELSEWHERE))
