"""What people say on Gitea, what we answer, and the news that it sends of all that."""

import pytest

from mergeyard.domain.instants import Instant
from mergeyard.ports.forge import (
    BranchNews,
    CommitNews,
    Forged,
    News,
    PullNews,
)
from tests.contract.host.gitea_stage import SECRET, GiteaStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.gitea.mailbox import open_mailbox
from tests.support.patience import eventually

EVENTS = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


@asynchronous
async def test_what_we_say_is_said_once_and_edited_in_place(gitea: GiteaStage):
    gitea.open(1)
    async with gitea.host() as host:
        first = await host.say(gitea.repo, ONE, "<!-- mergeyard -->\nwaiting", None)
        assert await host.say(gitea.repo, ONE, "<!-- mergeyard -->\ntesting", first) == first
        assert await host.say(gitea.repo, ONE, "<!-- mergeyard -->\nmerged", None) == first
        assert gitea.project.comments(1) == ["<!-- mergeyard -->\nmerged"]
        gitea.project.comment(1, "ada", "<!-- another -->\nstrange")
        assert await host.say(gitea.repo, ONE, "<!-- another -->\nours", None) != first
        assert len(gitea.project.comments(1)) == 3
        assert await host.say(gitea.repo, ONE, "<!-- third -->\nnew", "987654321") not in (first, "987654321")


@asynchronous
async def test_labels_and_comments_are_heard_answered_with_a_reaction_and_taken_away(gitea: GiteaStage):
    gitea.open(1)
    gitea.project.label(1, "merge-queue")
    said = gitea.project.comment(1, "ada", "/merge")
    async with gitea.host() as host:
        thread = await host.thread(gitea.repo, ONE, Instant(0))
        assert thread.labels == {"merge-queue"}
        assert [(each.id, each.author, each.text) for each in thread.comments] == [(str(said), "ada", "/merge")]
        later = Instant(thread.comments[0].at + 60_000)
        assert (await host.thread(gitea.repo, ONE, later)).comments == ()
        for _ in range(2):
            await host.react(gitea.repo, ONE, str(said), fine=True)
            await host.unlabel(gitea.repo, ONE, "merge-queue")
        await host.react(gitea.repo, ONE, "987654321", fine=False)
    assert gitea.project.reactions(said) == ["+1"]
    assert gitea.project.labels(1) == []


@asynchronous
async def test_people_may_do_what_they_were_let_in_for(gitea: GiteaStage):
    for person, role in {"linus": "admin", "ada": "write", "grace": "read"}.items():
        gitea.project.admit(person, role)
    gitea.people.account("eve")
    people = ("acme", "linus", "ada", "grace", "eve", "nobody-there")
    async with gitea.host() as host:
        assert [person for person in people if await host.may_write(gitea.repo, person, "main")] == [
            "acme",
            "linus",
            "ada",
        ]
        assert [person for person in people if await host.may_maintain(gitea.repo, person)] == ["acme", "linus"]


# News


@asynchronous
async def test_all_news_really_arrives_signed_and_is_understood(gitea: GiteaStage):
    with open_mailbox() as mailbox:
        gitea.project.send_news_to(mailbox.url, SECRET, *EVENTS)
        head = gitea.open(1)
        gitea.project.label(1, "merge-queue")
        gitea.project.comment(1, "ada", "/merge")
        gitea.project.report(head, "unit", "success")
        gitea.project.commit("main", {"m.txt": "1"})
        async with gitea.host() as host:

            def heard() -> list[News]:
                return [news for headers, body in [*mailbox.letters] for news in host.heard(headers, body)]

            expected = {PullNews(gitea.repo, ONE), BranchNews(gitea.repo, "main"), CommitNews(gitea.repo, head)}
            eventually(lambda: expected <= set(heard()) and heard().count(PullNews(gitea.repo, ONE)) >= 3, but=heard)
            headers, body = mailbox.letters[0]
            with pytest.raises(Forged):
                host.heard(headers, body + b" ")
            with pytest.raises(Forged):
                host.heard({name: of for name, of in headers.items() if "signature" not in name}, body)
        async with gitea.host(webhook_secret="another") as host:
            with pytest.raises(Forged):
                host.heard(headers, body)
        async with gitea.host(webhook_secret=None) as host:
            with pytest.raises(Forged, match="no secret"):
                host.heard(headers, body)
