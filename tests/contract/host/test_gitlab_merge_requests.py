"""Behavior that only GitLab has when projects and merge requests are read."""

import subprocess
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.forge import DraftPullRequest, HostAccessLost, HostUnavailable, UnexpectedHostResponse
from mergeyard.ports.git import Remote
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.gitlab.fake import NAME
from tests.support.forges.gitlab.world import DELETED, DEVELOPER, TOKEN, User
from tests.support.repositories import ENVIRONMENT

# Merge requests


@asynchronous
async def test_a_merge_request_from_a_fork_is_marked_and_its_head_is_in_the_project(gitlab: GitlabEnvironment):
    fork = gitlab.gitlab.create_project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    head = fork.origin.branch("topic", base="main", files={"b.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic", source=fork)
    async with gitlab.host() as host:
        pull_request = await host.read_pull_request(gitlab.repo, ONE)
        assert pull_request
        assert (pull_request.fork, pull_request.head) == (True, head)
        assert gitlab.origin.tip(host.head_ref(ONE)) == head


@asynchronous
async def test_a_merge_request_without_a_head_cannot_be_read_and_others_can(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.open(2)
    gitlab.request(1).head = None
    async with gitlab.host() as host:
        with pytest.raises(UnexpectedHostResponse):
            await host.read_pull_request(gitlab.repo, ONE)
        assert await host.read_pull_request(gitlab.repo, PullRequestNumber(2))
        assert "refs/merge-requests/1/head" not in await host.refs(gitlab.repo, [])
        assert [one.number for one in await host.open_pull_requests(gitlab.repo, "main")] == [2]


@asynchronous
async def test_a_merge_request_of_a_deleted_account_belongs_to_the_ghost_user(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().author = User(7, "eve", state=DELETED)
    async with gitlab.host() as host:
        pull_request = await host.read_pull_request(gitlab.repo, ONE)
        assert pull_request
        assert pull_request.author == "ghost"
        assert "refs/merge-requests/1/head" in await host.refs(gitlab.repo, [])


# Refs


@asynchronous
async def test_every_change_of_a_merge_request_changes_its_refs(gitlab: GitlabEnvironment):
    gitlab.open(1)
    ada, request = gitlab.world.user("ada"), gitlab.request()
    async with gitlab.host() as host:
        seen = [await host.refs(gitlab.repo, ["main"])]
        for facts in ({"labels": ["merge-queue"]}, {"title": "Draft: A change"}, {"target_branch": "next"}):
            gitlab.acts.update(gitlab.project, request, ada, **facts)
            seen.append(await host.refs(gitlab.repo, ["main"]))
        gitlab.acts.add_note(gitlab.project, request, "please merge", by="ada")
        gitlab.clock.move(host.poll_interval_ms)
        seen.append(await host.refs(gitlab.repo, ["main"]))
    assert len({refs["refs/merge-requests/1/meta"] for refs in seen}) == len(seen)
    assert len({refs["refs/merge-requests/1/head"] for refs in seen}) == 1


def comment_after(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "!merge", by="ada")


def push_after(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.commit(gitlab.project, "topic-1", {"1.txt": "2"})


@pytest.mark.parametrize("happen", [comment_after, push_after])
@asynchronous
async def test_a_change_that_the_list_does_not_show_yet_is_found_at_the_next_read(
    gitlab: GitlabEnvironment, happen: Callable[[GitlabEnvironment], None]
):
    gitlab.open(1)
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), labels=["bug"])
    async with gitlab.host() as host:
        seen = [await host.refs(gitlab.repo, [])]
        gitlab.clock.move(40 * SECOND)
        updated_at = gitlab.request().updated_at
        happen(gitlab)
        assert gitlab.request().updated_at == updated_at
        for _ in range(3):
            seen.append(await host.refs(gitlab.repo, []))
            gitlab.clock.move(40 * SECOND)
        assert len({refs["refs/merge-requests/1/meta"] for refs in seen}) == len(seen)


@pytest.mark.parametrize("pause", [10 * SECOND, 600 * SECOND])
@asynchronous
async def test_a_merge_request_is_read_once_more_when_it_is_no_longer_recent_and_then_rests(
    gitlab: GitlabEnvironment, pause: int
):
    """Whatever the interval between two polls is, none falls between."""
    gitlab.open(1)
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), labels=["bug"])
    async with gitlab.host() as host:
        gitlab.clock.move(85 * SECOND)
        recent = await host.refs(gitlab.repo, [])
        gitlab.clock.move(pause)
        after = await host.refs(gitlab.repo, [])
        assert after != recent
        gitlab.clock.move(pause)
        assert await host.refs(gitlab.repo, []) == after


@asynchronous
async def test_a_recent_merge_request_is_read_at_most_once_per_poll_interval(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        interval = host.poll_interval_ms
        gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), labels=["bug"])
        gitlab.clock.move(interval - gitlab.clock.now() % interval)
        seen = list[str]()
        for _ in range(4):
            seen.append((await host.refs(gitlab.repo, []))["refs/merge-requests/1/meta"])
            gitlab.clock.move(interval // 2)
    assert seen[0] == seen[1] != seen[2] == seen[3]


@asynchronous
async def test_a_closed_merge_request_is_not_read_again_because_it_is_recent(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), state="closed")
    async with gitlab.host() as host:
        before = await host.refs(gitlab.repo, [])
        gitlab.clock.move(SECOND)
        assert await host.refs(gitlab.repo, []) == before


@asynchronous
async def test_a_recheck_by_gitlab_does_not_change_the_refs(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        before = await host.refs(gitlab.repo, ["main"])
        gitlab.request().undecided = "checking"
        assert await host.refs(gitlab.repo, ["main"]) == before


@asynchronous
async def test_merge_requests_of_our_test_branches_are_not_among_the_refs(gitlab: GitlabEnvironment):
    gitlab.origin.branch("mergeyard/pr-1/x", base="main", files={"b.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "mergeyard/pr-1/x")
    async with gitlab.host() as host:
        assert (await host.refs(gitlab.repo, ["main"])).keys() == {"refs/heads/main"}


@asynchronous
async def test_only_the_named_branches_are_read_whatever_is_in_their_names(gitlab: GitlabEnvironment):
    names = ["release/1.0", "a#b%2Fc&d=+", "ä"]
    tips = {f"refs/heads/{name}": gitlab.origin.branch(name, base="main", files={name: "1"}) for name in names}
    async with gitlab.host() as host:
        assert await host.refs(gitlab.repo, [*names, "gone"]) == tips


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        ("refs/merge-requests/12/head", 12),
        ("refs/merge-requests/12/meta", 12),
        ("refs/merge-requests/2147483648/head", None),
        ("refs/merge-requests/01/head", None),
        ("refs/merge-requests/1/merge", None),
        ("refs/merge-requests/1/head\n", None),
        ("refs/pull/1/head", None),
    ],
)
@asynchronous
async def test_the_number_is_read_off_the_ref(gitlab: GitlabEnvironment, ref: str, number: int | None):
    async with gitlab.host() as host:
        assert host.pull_request_number_of(ref) == number


# Names and addresses


@asynchronous
async def test_projects_in_nested_groups_are_found(gitlab: GitlabEnvironment):
    gitlab.gitlab.create_project("acme/tools/inner/app")
    nested = Repo(NAME, "acme/tools/inner", "app")
    async with gitlab.host() as host:
        assert await host.has_repository(nested)
        assert "refs/heads/main" in await host.refs(nested, ["main"])
        assert host.pull_request_url(nested, ONE) == f"{gitlab.world.web_url}/acme/tools/inner/app/-/merge_requests/1"
        assert "refs/heads/main" in ls_remote(await host.remote(nested))


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "-x", "../x", "a\0b", "a\n", "x" * 256, "ä", "a b", "a?b", "a.git", "a.", "a//b", "/a", "a/"],
)
@asynchronous
async def test_no_repository_name_leads_to_another_url(gitlab: GitlabEnvironment, name: str):
    async with gitlab.host() as host:
        for repo in (Repo(NAME, name, "app"), Repo(NAME, "acme", name)):
            assert not await host.has_repository(repo)
            with pytest.raises(HostUnavailable):
                await host.remote(repo)
            with pytest.raises(HostUnavailable):
                await host.read_pull_request(repo, ONE)


@asynchronous
async def test_the_case_of_a_name_does_not_matter(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        assert host.canonical_repo(Repo(NAME, "ACME", "App")) == gitlab.repo
        assert await host.has_repository(Repo(NAME, "ACME", "App"))


# Git


def ls_remote(remote: Remote) -> str:
    command = ["git", "ls-remote", remote.url]
    environment = {**ENVIRONMENT, **remote.environment}
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout.decode()


@asynchronous
async def test_git_credentials_are_neither_in_the_url_nor_in_the_arguments(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        remote = await host.remote(gitlab.repo)
        assert f"{head}\trefs/merge-requests/1/head" in ls_remote(remote)
        assert TOKEN not in remote.url
        with pytest.raises(subprocess.CalledProcessError):
            ls_remote(replace(remote, environment={"GIT_TERMINAL_PROMPT": "0"}))


@asynchronous
async def test_gitlab_detects_a_push_that_merges(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.origin.branch("refs/made/here", base="main")
    merged = gitlab.origin.commit("refs/made/here", {"1.txt": "1"}, merging=head)
    async with gitlab.host() as host:
        remote = await host.remote(gitlab.repo)
        command = ["git", "--git-dir", str(gitlab.origin.path), "push", "--quiet", remote.url]
        environment = {**ENVIRONMENT, **remote.environment}
        subprocess.run([*command, f"{merged}:refs/heads/main"], check=True, env=environment)
        pull_request = await host.read_pull_request(gitlab.repo, ONE)
        assert pull_request
        assert pull_request.merged_into == "main"
        assert gitlab.request().merge_commit == merged


# Errors


@asynchronous
async def test_a_temporary_error_is_reported_without_secrets(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RespondsWith(502))
        gitlab.gitlab.faults.plan(RespondsWith(200, body=b"<html>"))
        gitlab.gitlab.faults.plan(RespondsWith(401))
        gitlab.gitlab.faults.plan(RespondsWith(200, body=b'{"iid": "1"}'))
        for _ in range(4):
            with pytest.raises((HostUnavailable, HostAccessLost)) as error:
                await host.read_pull_request(gitlab.repo, ONE)
            assert TOKEN not in str(error.value)
        assert await host.read_pull_request(gitlab.repo, ONE)


@asynchronous
async def test_no_request_is_sent_while_gitlab_rate_limits(gitlab: GitlabEnvironment):
    gitlab.open(1)
    limits = {"ratelimit-limit": "600", "ratelimit-remaining": "0", "ratelimit-reset": "1", "retry-after": "30"}
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RespondsWith(429, limits))
        with pytest.raises(HostUnavailable):
            await host.read_pull_request(gitlab.repo, ONE)
        asked = len(gitlab.gitlab.faults.calls)
        with pytest.raises(HostUnavailable, match="wait"):
            await host.read_pull_request(gitlab.repo, ONE)
        assert len(gitlab.gitlab.faults.calls) == asked


@asynchronous
async def test_a_list_is_read_to_its_end_though_gitlab_names_another_host_in_its_links(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.world.external_url = "http://elsewhere.test:443"
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    for number in range(101):
        gitlab.acts.add_job(gitlab.project, pipeline, f"job {number}", "success")
    async with gitlab.host() as host:
        assert len(await host.statuses(gitlab.repo, head, "main")) == 102


@asynchronous
async def test_the_new_name_of_a_renamed_project_is_in_the_message(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.world.rename(gitlab.project, "acme/renamed")
    async with gitlab.host() as host:
        for asked in (
            host.read_pull_request(gitlab.repo, ONE),
            host.refs(gitlab.repo, ["main"]),
            host.put_comment(gitlab.repo, ONE, "hello", "12"),
            host.remove_label(gitlab.repo, ONE, "merge-queue"),
        ):
            with pytest.raises(HostAccessLost, match="acme/renamed"):
                await asked


@asynchronous
async def test_a_project_that_is_no_longer_visible_is_an_error_and_its_merge_requests_are_not_missing(
    gitlab: GitlabEnvironment,
):
    head = gitlab.open(1)
    gitlab.project.members = {"ada": DEVELOPER}
    ours = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
    draft = DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="Testing 1", text="")
    async with gitlab.host() as host:
        assert not await host.has_repository(gitlab.repo)
        for asked in (
            host.read_pull_request(gitlab.repo, ONE),
            host.refs(gitlab.repo, ["main"]),
            host.required_statuses(gitlab.repo, "main"),
            host.open_pull_requests(gitlab.repo, "main"),
            host.statuses(gitlab.repo, head, "main"),
            host.thread(gitlab.repo, ONE, Instant(0)),
            host.can_write(gitlab.repo, "ada", "main"),
            host.put_comment(gitlab.repo, ONE, "hello", None),
            host.put_comment(gitlab.repo, ONE, "hello", "12"),
            host.remove_label(gitlab.repo, ONE, "merge-queue"),
            host.set_status(gitlab.repo, head, ours),
            host.open_draft(gitlab.repo, draft),
            host.close_draft(gitlab.repo, draft.branch),
        ):
            with pytest.raises(HostAccessLost):
                await asked
