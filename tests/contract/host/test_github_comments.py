"""Comments, reactions, labels, statuses, and drafts for test branches on GitHub."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github import pull_requests
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.ports.forge import (
    Comment,
    DraftPullRequest,
    HostError,
    HostRefused,
    HostUnavailable,
    Merge,
    Merged,
    Thread,
)
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import GithubEnvironment, github_environment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import LosesResponse, RespondsWith

OURS = "<!-- mergeyard: app main -->\nIn the queue."
LATER = "<!-- mergeyard: app main -->\nMerged."
DRAFT = DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="Testing #1", text="By the queue.")


def merge_of_one(head: Sha) -> Merge:
    method = MergeMethod.MERGE_COMMIT
    return Merge(number=ONE, head=head, base_branch="main", method=method, title="Merge #1", message="")


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
        with pytest.raises(HostRefused, match="issue is locked"):
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


@asynchronous
async def test_only_a_comment_whose_text_changed_is_edited(tmp_path: Path):
    """GitHub changes `updated_at` for other reasons, too, and shows whole seconds."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as env:
        env.open(1)
        plain, hidden, edited, edited_at_once = [env.acme.add_comment(1, "grace", "hello") for _ in range(4)]
        env.acme.edit_comment(edited_at_once, "/merge")
        clock.move_to(later(clock.now(), MINUTE))
        hidden.updated_at = clock.now()
        env.acme.edit_comment(edited, "/merge")
        async with env.host() as host:
            read = {each.id: each for each in (await host.thread(env.repo, ONE, Instant(0))).comments}
            found = [await host.is_edited(env.repo, ONE, read[str(each.id)]) for each in (plain, hidden)]
            assert found == [False, False]
            found = [await host.is_edited(env.repo, ONE, read[str(each.id)]) for each in (edited, edited_at_once)]
            assert found == [True, True]


@asynchronous
async def test_a_changed_comment_counts_as_edited_where_github_does_not_tell(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as env:
        env.open(1)
        plain, changed, buried = [env.acme.add_comment(1, "grace", "/merge") for _ in range(3)]
        clock.move_to(later(clock.now(), MINUTE))
        changed.updated_at = buried.updated_at = clock.now()
        async with env.host() as host:
            read = {each.id: each for each in (await host.thread(env.repo, ONE, Instant(0))).comments}
            env.github.faults.plan(RespondsWith(403), "/graphql", times=2)
            assert not await host.is_edited(env.repo, ONE, read[str(plain.id)])
            assert await host.is_edited(env.repo, ONE, read[str(changed.id)])
            env.github.faults.plan(RespondsWith(503), "/graphql")
            with pytest.raises(HostUnavailable):
                await host.is_edited(env.repo, ONE, read[str(plain.id)])
            for _ in range(100):
                env.acme.add_comment(1, "ada", "Thanks!")
            assert await host.is_edited(env.repo, ONE, read[str(buried.id)])


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


@pytest.mark.parametrize("role", ROLES)
@asynchronous
async def test_a_custom_role_has_the_rights_of_the_role_that_it_is_built_on(github: GithubEnvironment, role: str):
    github.acme.roles["grace"] = role
    github.acme.role_names["grace"] = "release captain"
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
        with pytest.raises(HostRefused, match="No commit found"):
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
async def test_an_ordinary_pull_request_is_opened_where_github_has_no_drafts(github: GithubEnvironment):
    """And the queue treats it as one of its own: it is not listed, and it is closed with the run."""
    github.acme.drafts_supported = False
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    async with github.host() as host:
        await host.open_draft(github.repo, DRAFT)
        await host.open_draft(github.repo, DRAFT)
        (change,) = github.acme.pull_requests.values()
        assert (change.draft, change.title) == (False, DRAFT.title)
        assert not await host.open_pull_requests(github.repo, "main")
        assert await host.refs(github.repo, []) == {}
        shown = await host.read_pull_request(github.repo, PullRequestNumber(change.number))
        assert shown is not None
        assert shown.draft
        await host.close_draft(github.repo, DRAFT.branch)
    assert not change.open


@asynchronous
async def test_a_draft_that_was_opened_a_moment_ago_counts_as_open(github: GithubEnvironment):
    """GitHub's list can be older than the answer to the call that opened it."""
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    async with github.host() as host:
        await host.open_draft(github.repo, DRAFT)
        github.github.faults.plan(RespondsWith(200, body=b"[]"), "/pulls$", method="GET")
        await host.open_draft(github.repo, DRAFT)
    assert len(github.acme.pull_requests) == 1


@asynchronous
async def test_a_draft_that_github_refuses_is_an_error_with_the_reason(github: GithubEnvironment):
    github.origin.branch(DRAFT.branch, base="main")
    async with github.host() as host:
        with pytest.raises(HostRefused, match=f"No commits between main and {DRAFT.branch}"):
            await host.open_draft(github.repo, DRAFT)
        github.acme.drafts_supported = False
        with pytest.raises(HostRefused, match=f"No commits between main and {DRAFT.branch}"):
            await host.open_draft(github.repo, DRAFT)


async def find_draft_error(host: GithubHost, env: GithubEnvironment, draft: DraftPullRequest) -> HostError:
    with pytest.raises(HostError) as error:
        await host.open_draft(env.repo, draft)
    return error.value


@pytest.mark.parametrize("drafts_supported", [True, False])
@asynchronous
async def test_a_draft_for_a_missing_branch_is_refused_only_after_two_minutes(
    tmp_path: Path, *, drafts_supported: bool
):
    """GitHub can need a moment until it knows a branch that was pushed."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.acme.drafts_supported = drafts_supported
        async with github.host() as host:
            for _ in range(2):
                error = await find_draft_error(host, github, DRAFT)
                assert not isinstance(error, HostRefused)
                assert f"does not know the branch {DRAFT.branch} of {github.repo} yet" in str(error)
                clock.move_to(later(clock.now(), MINUTE))
            error = await find_draft_error(host, github, DRAFT)
            assert isinstance(error, HostRefused)
            assert "422" in str(error)
            other = await find_draft_error(host, github, replace(DRAFT, branch="mergeyard/pr-2/x"))
            assert not isinstance(other, HostRefused)
            github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
            await host.open_draft(github.repo, DRAFT)
    assert len(github.acme.pull_requests) == 1


@asynchronous
async def test_only_the_last_missing_branches_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pull_requests, "MAX_KNOWN", 1)
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        async with github.host() as host:
            for draft in (DRAFT, replace(DRAFT, branch="mergeyard/pr-2/x")):
                await find_draft_error(host, github, draft)
            clock.move_to(later(clock.now(), 2 * MINUTE))
            assert not isinstance(await find_draft_error(host, github, DRAFT), HostRefused)


@asynchronous
async def test_a_draft_for_a_missing_base_branch_is_refused_at_once(github: GithubEnvironment):
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    async with github.host() as host:
        error = await find_draft_error(host, github, replace(DRAFT, base_branch="gone"))
        assert isinstance(error, HostRefused)


@asynchronous
async def test_drafts_and_an_urgent_status_do_not_wait_for_other_writes_and_comments_do(github: GithubEnvironment):
    """A merge by GitHub can wait for an urgent status."""
    head = github.open(1)
    github.acme.push_commit(DRAFT.branch, {"b.txt": "1"})
    pending = Status(context="mergeyard", state=StatusState.PENDING, at=Instant(0))
    one_an_hour = WritePace(interval_ms=0, per_minute=1, per_hour=1)
    async with github.host(write_pace=one_an_hour) as host:
        for _ in range(2):
            await host.set_status(github.repo, head, pending, urgent=True)
        await host.open_draft(github.repo, DRAFT)
        await host.close_draft(github.repo, DRAFT.branch)
        assert isinstance(await host.merge(github.repo, merge_of_one(head)), Merged)
        with pytest.raises(HostUnavailable, match="limits how much we write"):
            await host.put_comment(github.repo, ONE, OURS, None)
        for state in (StatusState.PENDING, StatusState.SUCCESS):
            with pytest.raises(HostUnavailable, match="limits how much we write"):
                await host.set_status(github.repo, head, replace(pending, state=state))
