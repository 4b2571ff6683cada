"""What only GitLab does when its projects and merge requests are read."""

import subprocess

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.forge import Draft
from mergeyard.ports.git import Remote
from mergeyard.ports.host import HostRefused, HostTrouble, Unreadable
from tests.contract.host.gitlab_stage import GitlabStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers
from tests.support.forges.gitlab.fake import NAME
from tests.support.forges.gitlab.nouns import DELETED, DEVELOPER, Person
from tests.support.forges.gitlab.world import TOKEN
from tests.support.repositories import ENVIRONMENT

# Merge requests


@asynchronous
async def test_one_from_a_fork_is_known_as_such_and_its_head_is_in_the_project(gitlab: GitlabStage):
    fork = gitlab.gitlab.project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    head = fork.origin.branch("topic", upon="main", files={"b.txt": "1"})
    gitlab.acts.open(gitlab.project, "topic", source=fork)
    async with gitlab.host() as host:
        pull = await host.pull(gitlab.repo, ONE)
        assert pull
        assert (pull.fork, pull.head) == (True, head)
        assert gitlab.origin.tip(host.head_ref(ONE)) == head


@asynchronous
async def test_one_without_a_head_cannot_be_read_and_the_others_can(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.open(2)
    gitlab.request(1).head = None
    async with gitlab.host() as host:
        with pytest.raises(Unreadable):
            await host.pull(gitlab.repo, ONE)
        assert await host.pull(gitlab.repo, PrNumber(2))
        assert "refs/merge-requests/1/head" not in await host.refs(gitlab.repo, [])


@asynchronous
async def test_one_whose_author_is_gone_can_be_read(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.request().author = Person(7, "eve", state=DELETED)
    async with gitlab.host() as host:
        pull = await host.pull(gitlab.repo, ONE)
        assert pull
        assert pull.author == ""
        assert "refs/merge-requests/1/head" in await host.refs(gitlab.repo, [])


# Refs


@asynchronous
async def test_whatever_changes_at_a_merge_request_changes_its_refs(gitlab: GitlabStage):
    gitlab.open(1)
    ada, request = gitlab.world.person("ada"), gitlab.request()
    async with gitlab.host() as host:
        seen = [await host.refs(gitlab.repo, ["main"])]
        for facts in ({"labels": ["merge-queue"]}, {"title": "Draft: A change"}, {"target_branch": "next"}):
            gitlab.acts.change(gitlab.project, request, ada, **facts)
            seen.append(await host.refs(gitlab.repo, ["main"]))
        gitlab.acts.say(gitlab.project, request, "please merge", by="ada")
        seen.append(await host.refs(gitlab.repo, ["main"]))
    assert len({refs["refs/merge-requests/1/meta"] for refs in seen}) == len(seen)
    assert len({refs["refs/merge-requests/1/head"] for refs in seen}) == 1


@asynchronous
async def test_that_gitlab_thinks_about_it_once_more_is_no_news(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        before = await host.refs(gitlab.repo, ["main"])
        gitlab.request().undecided = "checking"
        assert await host.refs(gitlab.repo, ["main"]) == before


@asynchronous
async def test_merge_requests_that_show_our_test_branches_tell_nothing(gitlab: GitlabStage):
    gitlab.origin.branch("mergeyard/pr-1/x", upon="main", files={"b.txt": "1"})
    gitlab.acts.open(gitlab.project, "mergeyard/pr-1/x")
    async with gitlab.host() as host:
        assert (await host.refs(gitlab.repo, ["main"])).keys() == {"refs/heads/main"}


@asynchronous
async def test_only_the_named_branches_are_read_whatever_is_in_their_names(gitlab: GitlabStage):
    names = ["release/1.0", "a#b%2Fc&d=+", "ä"]
    tips = {f"refs/heads/{name}": gitlab.origin.branch(name, upon="main", files={name: "1"}) for name in names}
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
async def test_the_number_is_read_off_the_ref(gitlab: GitlabStage, ref: str, number: int | None):
    async with gitlab.host() as host:
        assert host.number_of(ref) == number


# Names and addresses


@asynchronous
async def test_projects_in_nested_groups_are_found(gitlab: GitlabStage):
    gitlab.gitlab.project("acme/tools/inner/app")
    nested = Repo(NAME, "acme/tools/inner", "app")
    async with gitlab.host() as host:
        assert await host.knows(nested)
        assert "refs/heads/main" in await host.refs(nested, ["main"])
        assert host.pull_page(nested, ONE) == f"{gitlab.world.pages}/acme/tools/inner/app/-/merge_requests/1"
        assert "refs/heads/main" in ls_remote(await host.remote(nested))


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "-x", "../x", "a\0b", "a\n", "x" * 256, "ä", "a b", "a?b", "a.git", "a.", "a//b", "/a", "a/"],
)
@asynchronous
async def test_no_name_leads_elsewhere(gitlab: GitlabStage, name: str):
    async with gitlab.host() as host:
        for repo in (Repo(NAME, name, "app"), Repo(NAME, "acme", name)):
            assert not await host.knows(repo)
            with pytest.raises(HostTrouble):
                await host.remote(repo)
            with pytest.raises(HostTrouble):
                await host.pull(repo, ONE)


@asynchronous
async def test_the_case_of_a_name_does_not_matter(gitlab: GitlabStage):
    async with gitlab.host() as host:
        assert host.same_name(Repo(NAME, "ACME", "App")) == gitlab.repo
        assert await host.knows(Repo(NAME, "ACME", "App"))


# Git


def ls_remote(remote: Remote) -> str:
    command = ["git", "ls-remote", remote.url]
    environment = {**ENVIRONMENT, **remote.environment}
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout.decode()


@asynchronous
async def test_git_comes_in_with_credentials_that_are_neither_in_the_address_nor_in_the_arguments(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        remote = await host.remote(gitlab.repo)
        assert f"{head}\trefs/merge-requests/1/head" in ls_remote(remote)
        assert TOKEN not in remote.url
        with pytest.raises(subprocess.CalledProcessError):
            ls_remote(replace(remote, environment={"GIT_TERMINAL_PROMPT": "0"}))


@asynchronous
async def test_a_push_that_merges_is_seen_by_gitlab_itself(gitlab: GitlabStage):
    head = gitlab.open(1)
    gitlab.origin.branch("refs/made/here", upon="main")
    merged = gitlab.origin.commit("refs/made/here", {"1.txt": "1"}, merging=head)
    async with gitlab.host() as host:
        remote = await host.remote(gitlab.repo)
        command = ["git", "--git-dir", str(gitlab.origin.path), "push", "--quiet", remote.url]
        environment = {**ENVIRONMENT, **remote.environment}
        subprocess.run([*command, f"{merged}:refs/heads/main"], check=True, env=environment)
        pull = await host.pull(gitlab.repo, ONE)
        assert pull
        assert pull.merged_into == "main"
        assert gitlab.request().merge_commit == merged


# Trouble


@asynchronous
async def test_passing_trouble_is_told_as_such_and_without_secrets(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(Answers(502))
        gitlab.gitlab.faults.plan(Answers(200, body=b"<html>"))
        gitlab.gitlab.faults.plan(Answers(401))
        gitlab.gitlab.faults.plan(Answers(200, body=b'{"iid": "1"}'))
        for _ in range(4):
            with pytest.raises(HostTrouble) as trouble:
                await host.pull(gitlab.repo, ONE)
            assert TOKEN not in str(trouble.value)
        assert await host.pull(gitlab.repo, ONE)


@asynchronous
async def test_when_gitlab_asks_us_to_wait_nothing_more_is_asked(gitlab: GitlabStage):
    gitlab.open(1)
    limits = {"ratelimit-limit": "600", "ratelimit-remaining": "0", "ratelimit-reset": "1", "retry-after": "30"}
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(Answers(429, limits))
        with pytest.raises(HostTrouble):
            await host.pull(gitlab.repo, ONE)
        asked = len(gitlab.gitlab.faults.calls)
        with pytest.raises(HostTrouble, match="wait"):
            await host.pull(gitlab.repo, ONE)
        assert len(gitlab.gitlab.faults.calls) == asked


@asynchronous
async def test_a_list_that_goes_on_elsewhere_is_not_taken_for_the_whole(gitlab: GitlabStage):
    head = gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, head, "topic-1")
    for number in range(101):
        gitlab.acts.job(gitlab.project, pipeline, f"job {number}", "success")
    async with gitlab.host() as host:
        assert len(await host.statuses(gitlab.repo, head, "main")) == 102
        gitlab.world.pages = "http://elsewhere.test"
        with pytest.raises(HostTrouble, match=r"elsewhere\.test"):
            await host.statuses(gitlab.repo, head, "main")


@asynchronous
async def test_a_project_that_is_no_longer_for_us_is_trouble_and_its_merge_requests_are_not_gone(gitlab: GitlabStage):
    head = gitlab.open(1)
    gitlab.project.members = {"ada": DEVELOPER}
    ours = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
    draft = Draft(branch="mergeyard/pr-1/x", base="main", title="Testing 1", text="")
    async with gitlab.host() as host:
        assert not await host.knows(gitlab.repo)
        for asked in (
            host.pull(gitlab.repo, ONE),
            host.refs(gitlab.repo, ["main"]),
            host.required_statuses(gitlab.repo, "main"),
            host.statuses(gitlab.repo, head, "main"),
            host.thread(gitlab.repo, ONE, Instant(0)),
            host.may_write(gitlab.repo, "ada", "main"),
            host.say(gitlab.repo, ONE, "hello", None),
            host.say(gitlab.repo, ONE, "hello", "12"),
            host.unlabel(gitlab.repo, ONE, "merge-queue"),
            host.show_status(gitlab.repo, head, ours),
            host.open_draft(gitlab.repo, draft),
            host.close_draft(gitlab.repo, draft.branch),
        ):
            with pytest.raises(HostTrouble) as trouble:
                await asked
            assert not isinstance(trouble.value, HostRefused)
