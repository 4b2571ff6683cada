"""What the service can expect of every Git host."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import HostError, OpenPullRequest
from tests.contract.host.environment import ONE, TWO, HostEnvironment
from tests.support.asynchronous import asynchronous

ELSEWHERE = "elsewhere"


@asynchronous
async def test_a_pull_request_is_read_with_all_fields_that_the_queue_needs(env: HostEnvironment):
    head = env.open(1, title="Add a page", author="grace")
    async with env.host() as host:
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        assert pull_request.head_branch_access in (HeadBranchAccess.MOVABLE, HeadBranchAccess.NOT_MOVED)
        differing = {"head_branch_access": HeadBranchAccess.MOVABLE, "is_merged_by_head": False}
        assert replace(pull_request, mergeability=Mergeability.UNKNOWN, **differing) == PullRequest(
            number=ONE, head=head, base_branch="main", head_branch="topic-1", title="Add a page", author="grace"
        )


@asynchronous
async def test_the_text_of_a_pull_request_is_read(env: HostEnvironment):
    env.open(1, title="Add a page", author="grace")
    async with env.host() as host:
        text = await host.read_text(env.repo, ONE)
        assert text
        assert (text.title, text.author_name.lower()) == ("Add a page", "grace")
        assert await host.read_text(env.repo, TWO) is None


@asynchronous
async def test_a_pull_request_that_does_not_exist_is_none(env: HostEnvironment):
    env.open(1)
    async with env.host() as host:
        assert await host.read_pull_request(env.repo, TWO) is None


@asynchronous
async def test_draft_state_and_base_branch_are_read(env: HostEnvironment):
    env.open(1, draft=True, base="release")
    async with env.host() as host:
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        assert (pull_request.draft, pull_request.base_branch) == (True, "release")


@asynchronous
async def test_a_recent_push_is_read(env: HostEnvironment):
    env.open(1)
    async with env.host() as host:
        for _ in range(3):
            pushed = env.push(1)
            pull_request = await host.read_pull_request(env.repo, ONE)
            assert pull_request
            assert pull_request.head == pushed


@asynchronous
async def test_a_closed_pull_request_is_neither_open_nor_merged(env: HostEnvironment):
    env.open(1)
    env.close(1)
    async with env.host() as host:
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        assert (pull_request.is_open, pull_request.merged_into) == (False, None)


@asynchronous
async def test_a_pull_request_marked_as_merged_is_merged_into_its_base(env: HostEnvironment):
    head = env.open(1)
    landed = env.land(1)
    async with env.host() as host:
        assert await host.mark_merged(env.repo, ONE, head, landed)
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        assert (pull_request.is_open, pull_request.merged_into) == (False, "main")


@asynchronous
async def test_marking_a_pull_request_as_merged_again_changes_nothing(env: HostEnvironment):
    head = env.open(1)
    landed = env.land(1)
    async with env.host() as host:
        assert await host.mark_merged(env.repo, ONE, head, landed)
        once = await host.refs(env.repo, ["main"])
        assert await host.mark_merged(env.repo, ONE, head, landed)
        assert await host.refs(env.repo, ["main"]) == once


@asynchronous
async def test_the_tip_of_a_branch_is_read(env: HostEnvironment):
    env.open(1)
    landed = env.land(1)
    async with env.host() as host:
        assert await host.branch_tip(env.repo, "main") == landed
        assert await host.branch_tip(env.repo, "missing") is None
        with pytest.raises(HostError):
            await host.branch_tip(replace(env.repo, name=ELSEWHERE), "main")


@asynchronous
async def test_the_open_pull_requests_of_a_branch_are_listed_newest_first(env: HostEnvironment):
    first = env.open(1, title="Add a page", author="grace")
    env.open(2, base="release")
    env.open(3)
    env.close(3)
    env.open(4, draft=True)
    async with env.host() as host:
        fourth, listed = await host.open_pull_requests(env.repo, "main")
        assert (fourth.number, fourth.draft) == (4, True)
        assert listed == OpenPullRequest(
            number=ONE, title="Add a page", author="grace", head=first, head_branch="topic-1"
        )
        assert [one.number for one in await host.open_pull_requests(env.repo, "release")] == [TWO]
        assert not await host.open_pull_requests(env.repo, "missing")
        pushed = env.push(1)
        assert (await host.open_pull_requests(env.repo, "main"))[-1].head == pushed


@asynchronous
async def test_a_list_of_pull_requests_hides_no_change_from_the_poller(env: HostEnvironment):
    env.open(1)
    async with env.host() as host:
        before = await host.refs(env.repo, ["main"])
        env.push(1)
        await host.open_pull_requests(env.repo, "main")
        assert list(await host.find_changed({env.repo: [ONE]})) == [env.repo]
        assert await host.refs(env.repo, ["main"]) != before


@asynchronous
async def test_the_changed_refs_between_two_reads_name_the_pull_request(env: HostEnvironment):
    env.open(1)
    env.open(2)
    async with env.host() as host:
        before = await host.refs(env.repo, ["main"])
        env.push(2)
        pushed = await host.refs(env.repo, ["main"])
        assert {host.pull_request_number_of(ref) for ref, _ in pushed.items() - before.items()} - {None} == {TWO}
        env.close(1)
        closed = await host.refs(env.repo, ["main"])
        assert {host.pull_request_number_of(ref) for ref, _ in closed.items() - pushed.items()} == {ONE}


@asynchronous
async def test_the_head_ref_of_a_pull_request_is_among_the_refs(env: HostEnvironment):
    head = env.open(1)
    async with env.host() as host:
        assert (await host.refs(env.repo, ["main"]))[host.head_ref(ONE)] == head


@asynchronous
async def test_a_branch_ref_has_no_pull_request_number(env: HostEnvironment):
    async with env.host() as host:
        assert "refs/heads/main" in await host.refs(env.repo, ["main"])
        assert host.pull_request_number_of("refs/heads/main") is None


@asynchronous
async def test_an_invisible_repository_is_an_error_and_not_empty(env: HostEnvironment):
    gone = replace(env.repo, name=ELSEWHERE)
    async with env.host() as host:
        with pytest.raises(HostError):
            await host.read_pull_request(gone, ONE)
        with pytest.raises(HostError):
            await host.refs(gone, ["main"])
        with pytest.raises(HostError):
            await host.open_pull_requests(gone, "main")


@asynchronous
async def test_a_host_has_its_repositories_and_no_others(env: HostEnvironment):
    async with env.host() as host:
        assert await host.has_repository(env.repo)
        assert not await host.has_repository(replace(env.repo, name=ELSEWHERE))
        assert not await host.has_repository(replace(env.repo, owner=ELSEWHERE))
