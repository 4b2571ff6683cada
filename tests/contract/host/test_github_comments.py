"""Comments, reactions, labels, statuses, and drafts for test branches on GitHub."""

from pathlib import Path

import pytest

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.ports.forge import Comment, DraftPullRequest, HostUnavailable, Thread
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import GithubEnvironment, github_environment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import LosesResponse, RespondsWith

OURS = "<!-- mergeyard: app main -->\nIn the queue."
LATER = "<!-- mergeyard: app main -->\nMerged."
DRAFT = DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="Testing #1", text="By the queue.")


def texts(env: GithubEnvironment) -> list[str]:
    return [posted.body for posted in env.acme.comments.values()]


# Comments


@pytest.mark.parametrize("env", ["github", "github app"], indirect=True)
@asynchronous
async def test_a_comment_is_posted_once_and_edited_in_place(env: GithubEnvironment):
    env.open(1)
    async with env.host() as host:
        comment = await host.put_comment(env.repo, ONE, OURS, None)
        assert await host.put_comment(env.repo, ONE, LATER, comment) == comment
    assert texts(env) == [LATER]


@pytest.mark.parametrize("env", ["github", "github app"], indirect=True)
@asynchronous
async def test_a_comment_whose_response_was_lost_is_found_again(env: GithubEnvironment):
    env.open(1)
    env.github.faults.plan(LosesResponse(), "/comments", method="POST")
    async with env.host() as host:
        with pytest.raises(HostUnavailable):
            await host.put_comment(env.repo, ONE, OURS, None)
        await host.put_comment(env.repo, ONE, LATER, None)
    assert texts(env) == [LATER]


@asynchronous
async def test_a_comment_of_another_user_in_our_format_is_not_edited(github: GithubEnvironment):
    github.open(1)
    github.acme.add_comment(1, "mallory", OURS)
    async with github.host() as host:
        await host.put_comment(github.repo, ONE, LATER, None)
    assert texts(github) == [OURS, LATER]


@asynchronous
async def test_a_deleted_comment_is_posted_again(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        comment = await host.put_comment(github.repo, ONE, OURS, None)
        del github.acme.comments[int(comment)]
        assert await host.put_comment(github.repo, ONE, LATER, comment) != comment
    assert texts(github) == [LATER]


@asynchronous
async def test_a_locked_conversation_is_an_error_with_the_hosts_message(github: GithubEnvironment):
    github.open(1)
    body = b'{"message": "Unable to create comment because issue is locked."}'
    github.github.faults.plan(RespondsWith(403, body=body), "/comments", method="POST")
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="issue is locked"):
            await host.put_comment(github.repo, ONE, OURS, None)


# Threads and permissions


@asynchronous
async def test_labels_and_comments_since_a_time_are_read(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as env:
        env.open(1)
        env.acme.add_comment(1, "ada", "/merge")
        clock.move_to(later(clock.now(), MINUTE))
        since = clock.now()
        posted = env.acme.add_comment(1, "grace", "/merge cancel")
        env.acme.add_label(1, "merge-queue")
        comment = Comment(id=str(posted.id), author="grace", text="/merge cancel", at=since)
        async with env.host() as host:
            assert await host.thread(env.repo, ONE, since) == Thread(frozenset({"merge-queue"}), (comment,))
            everything = await host.thread(env.repo, ONE, Instant(0))
            assert [posted.text for posted in everything.comments] == ["/merge", "/merge cancel"]


@asynchronous
async def test_every_page_of_a_long_conversation_is_read_in_its_order(github: GithubEnvironment):
    github.open(1)
    for number in range(130):
        github.acme.add_comment(1, "ada", f"{number}")
    async with github.host() as host:
        thread = await host.thread(github.repo, ONE, Instant(0))
    assert [comment.text for comment in thread.comments] == [f"{number}" for number in range(130)]


ROLES = {
    "admin": (True, True),
    "maintain": (True, True),
    "write": (True, False),
    "triage": (False, False),
    "read": (False, False),
}


@pytest.mark.parametrize("role", ROLES)
@asynchronous
async def test_only_some_roles_can_write_and_fewer_can_bypass_rules(github: GithubEnvironment, role: str):
    github.acme.roles["grace"] = role
    async with github.host() as host:
        may = await host.can_write(github.repo, "grace", "main"), await host.can_maintain(github.repo, "grace")
        assert may == ROLES[role]


@pytest.mark.parametrize("person", ["stranger", "dependabot[bot]", "a/b", "a?b", "ä"])
@asynchronous
async def test_an_outside_user_cannot_write(github: GithubEnvironment, person: str):
    async with github.host() as host:
        assert not await host.can_write(github.repo, person, "main")


@asynchronous
async def test_an_unknown_user_cannot_write(github: GithubEnvironment):
    github.github.faults.plan(RespondsWith(404), "/permission")
    async with github.host() as host:
        assert not await host.can_write(github.repo, "ghost", "main")


@asynchronous
async def test_a_deleted_user_cannot_write_and_other_comments_are_still_read(github: GithubEnvironment):
    github.open(1)
    for author in ("", "grace"):
        github.acme.add_comment(1, author, "/merge")
    async with github.host() as host:
        thread = await host.thread(github.repo, ONE, Instant(0))
        assert [comment.author for comment in thread.comments] == ["", "grace"]
        assert not await host.can_write(github.repo, "", "main")
        assert not await host.can_maintain(github.repo, "")


# Reactions and labels


@asynchronous
async def test_a_reaction_shows_whether_a_command_was_accepted(github: GithubEnvironment):
    github.open(1)
    posted = github.acme.add_comment(1, "grace", "/merge")
    async with github.host() as host:
        for fine in (True, True, False):
            await host.react(github.repo, ONE, str(posted.id), success=fine)
        await host.react(github.repo, ONE, "404", success=True)
    assert posted.reactions == [("ada", "rocket"), ("ada", "confused")]


@pytest.mark.parametrize("label", ["merge-queue", "needs: review / 100%", "ä?#"])
@asynchronous
async def test_removing_a_label_twice_is_harmless(github: GithubEnvironment, label: str):
    github.open(1)
    github.acme.add_label(1, "other")
    github.acme.add_label(1, label)
    async with github.host() as host:
        await host.remove_label(github.repo, ONE, label)
        await host.remove_label(github.repo, ONE, label)
    assert github.change().labels == ["other"]


# Statuses


@asynchronous
async def test_our_status_of_a_commit_is_shown_and_shortened_to_the_limit(github: GithubEnvironment):
    head = github.open(1)
    status = Status(
        context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://queue/1", description="x" * 200
    )
    async with github.host() as host:
        await host.set_status(github.repo, head, status)
    shown = github.acme.statuses[head]["mergeyard"]
    assert (shown.state, shown.url, shown.description) == ("pending", "https://queue/1", "x" * 140)


@asynchronous
async def test_a_status_without_a_url_is_shown_without_one(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        status = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
        await host.set_status(github.repo, head, status)
        with pytest.raises(HostUnavailable, match="No commit found"):
            await host.set_status(github.repo, Sha("1" * 40), status)
    assert github.acme.statuses[head]["mergeyard"].url is None


# Drafts


@asynchronous
async def test_a_draft_is_opened_once_and_closed_once(github: GithubEnvironment):
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    async with github.host() as host:
        await host.open_draft(github.repo, DRAFT)
        await host.open_draft(github.repo, DRAFT)
        (change,) = github.acme.pull_requests.values()
        assert not await host.open_pull_requests(github.repo, "main")
        assert (change.draft, change.title, change.text, change.base) == (True, DRAFT.title, DRAFT.text, "main")
        await host.close_draft(github.repo, DRAFT.branch)
        await host.close_draft(github.repo, DRAFT.branch)
    assert not change.open


@asynchronous
async def test_closing_a_draft_leaves_a_branch_of_that_name_in_a_fork_alone(github: GithubEnvironment):
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    github.acme.open_pull_request(DRAFT.branch, home="mallory/app")
    async with github.host() as host:
        await host.close_draft(github.repo, DRAFT.branch)
    assert github.change(PullRequestNumber(1)).open


@asynchronous
async def test_a_draft_for_a_missing_branch_is_an_error(github: GithubEnvironment):
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="422"):
            await host.open_draft(github.repo, DRAFT)
