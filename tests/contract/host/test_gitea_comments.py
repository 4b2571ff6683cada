"""Comments, labels, permissions and webhooks on Gitea."""

import asyncio

import pytest

from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import BranchNotice, CommitNotice, ForgeNotice, InvalidSignature, PullRequestNotice
from tests.contract.host.environment import ONE
from tests.contract.host.gitea_environment import SECRET, GiteaEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.polling import ASYNC_TIMEOUT_S, eventually
from tests.support.webhooks import record_webhooks

EVENTS = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


@asynchronous
async def test_our_comment_is_posted_once_and_edited_in_place(gitea: GiteaEnvironment):
    gitea.open(1)
    async with gitea.host() as host:
        first = await host.put_comment(gitea.repo, ONE, "<!-- mergeyard -->\nwaiting", None)
        assert await host.put_comment(gitea.repo, ONE, "<!-- mergeyard -->\ntesting", first) == first
        assert await host.put_comment(gitea.repo, ONE, "<!-- mergeyard -->\nmerged", None) == first
        assert gitea.project.comments(1) == ["<!-- mergeyard -->\nmerged"]
        gitea.project.comment(1, "ada", "<!-- another -->\nstrange")
        assert await host.put_comment(gitea.repo, ONE, "<!-- another -->\nours", None) != first
        assert len(gitea.project.comments(1)) == 3
        assert await host.put_comment(gitea.repo, ONE, "<!-- third -->\nnew", "987654321") not in (first, "987654321")


@asynchronous
async def test_labels_and_comments_are_read_reacted_to_and_removed(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.label(1, "merge-queue")
    comment = gitea.project.comment(1, "ada", "/merge")
    async with gitea.host() as host:
        thread = await host.thread(gitea.repo, ONE, Instant(0))
        assert thread.labels == {"merge-queue"}
        assert [(each.id, each.author, each.text) for each in thread.comments] == [(str(comment), "ada", "/merge")]
        later = Instant(thread.comments[0].at + 60_000)
        assert (await host.thread(gitea.repo, ONE, later)).comments == ()
        for _ in range(2):
            await host.react(gitea.repo, ONE, str(comment), success=True)
            await host.remove_label(gitea.repo, ONE, "merge-queue")
        await host.react(gitea.repo, ONE, "987654321", success=False)
    assert gitea.project.reactions(comment) == ["+1"]
    assert gitea.project.labels(1) == []


@asynchronous
async def test_an_edited_comment_is_recognized(gitea: GiteaEnvironment):
    """Gitea shows whole seconds, so an edit can show the time of the comment for a moment."""
    gitea.open(1)
    gitea.project.add_collaborator("ada", "write")
    plain, edited = [gitea.project.comment(1, "ada", "hello") for _ in range(2)]
    async with gitea.host() as host, asyncio.timeout(ASYNC_TIMEOUT_S):
        is_recognized = False
        while not is_recognized:
            gitea.project.edit_comment(edited, "ada", "/merge")
            read = {each.id: each for each in (await host.thread(gitea.repo, ONE, Instant(0))).comments}
            assert not await host.is_edited(gitea.repo, ONE, read[str(plain)])
            is_recognized = await host.is_edited(gitea.repo, ONE, read[str(edited)])


@asynchronous
async def test_users_have_the_permissions_of_their_role(gitea: GiteaEnvironment):
    for person, role in {"linus": "admin", "ada": "write", "grace": "read"}.items():
        gitea.project.add_collaborator(person, role)
    gitea.people.ensure_account("eve")
    people = ("acme", "linus", "ada", "grace", "eve", "no-such-user")
    async with gitea.host() as host:
        assert [person for person in people if await host.can_write(gitea.repo, person, "main")] == [
            "acme",
            "linus",
            "ada",
        ]
        assert [person for person in people if await host.can_maintain(gitea.repo, person)] == ["acme", "linus"]


# Webhooks


@asynchronous
async def test_all_webhooks_arrive_signed_and_are_parsed(gitea: GiteaEnvironment):
    with record_webhooks() as mailbox:
        gitea.project.add_webhook(mailbox.url, SECRET, *EVENTS)
        head = gitea.open(1)
        gitea.project.label(1, "merge-queue")
        gitea.project.comment(1, "ada", "/merge")
        gitea.project.report(head, "unit", "success")
        gitea.project.commit("main", {"m.txt": "1"})
        async with gitea.host() as host:

            def notices() -> list[ForgeNotice]:
                return [notice for headers, body in [*mailbox.requests] for notice in host.parse_webhook(headers, body)]

            expected = {
                PullRequestNotice(gitea.repo, ONE),
                BranchNotice(gitea.repo, "main"),
                CommitNotice(gitea.repo, head),
            }
            eventually(
                lambda: expected <= set(notices()) and notices().count(PullRequestNotice(gitea.repo, ONE)) >= 3,
                describe=notices,
            )
            headers, body = mailbox.requests[0]
            with pytest.raises(InvalidSignature):
                host.parse_webhook(headers, body + b" ")
            with pytest.raises(InvalidSignature):
                host.parse_webhook({name: of for name, of in headers.items() if "signature" not in name}, body)
        async with gitea.host(webhook_secret="another") as host:
            with pytest.raises(InvalidSignature):
                host.parse_webhook(headers, body)
        async with gitea.host(webhook_secret=None) as host:
            with pytest.raises(InvalidSignature, match="no secret"):
                host.parse_webhook(headers, body)
