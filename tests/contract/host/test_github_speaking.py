"""What is said on GitHub: comments, reactions, labels, statuses, and drafts that show a test branch."""

from pathlib import Path

import pytest

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import MINUTE, Instant, later
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.forge import Comment, Draft, Thread
from mergeyard.ports.host import HostTrouble
from tests.contract.host.github_stage import GithubStage, github_stage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import Answers, LosesReply

OURS = "<!-- mergeyard: app main -->\nIn the queue."
LATER = "<!-- mergeyard: app main -->\nMerged."
DRAFT = Draft(branch="mergeyard/pr-1/x", base="main", title="Testing #1", text="By the queue.")


def texts(stage: GithubStage) -> list[str]:
    return [said.text for said in stage.acme.said.values()]


# Comments


@pytest.mark.parametrize("stage", ["github", "github app"], indirect=True)
@asynchronous
async def test_a_comment_is_made_once_and_changed_in_place(stage: GithubStage):
    stage.open(1)
    async with stage.host() as host:
        comment = await host.say(stage.repo, ONE, OURS, None)
        assert await host.say(stage.repo, ONE, LATER, comment) == comment
    assert texts(stage) == [LATER]


@pytest.mark.parametrize("stage", ["github", "github app"], indirect=True)
@asynchronous
async def test_a_comment_whose_reply_was_lost_is_found_again(stage: GithubStage):
    stage.open(1)
    stage.github.faults.plan(LosesReply(), "/comments", method="POST")
    async with stage.host() as host:
        with pytest.raises(HostTrouble):
            await host.say(stage.repo, ONE, OURS, None)
        await host.say(stage.repo, ONE, LATER, None)
    assert texts(stage) == [LATER]


@asynchronous
async def test_what_somebody_else_wrote_in_our_style_is_not_ours_to_change(github: GithubStage):
    github.open(1)
    github.acme.says(1, "mallory", OURS)
    async with github.host() as host:
        await host.say(github.repo, ONE, LATER, None)
    assert texts(github) == [OURS, LATER]


@asynchronous
async def test_a_comment_that_somebody_deleted_is_made_anew(github: GithubStage):
    github.open(1)
    async with github.host() as host:
        comment = await host.say(github.repo, ONE, OURS, None)
        del github.acme.said[int(comment)]
        assert await host.say(github.repo, ONE, LATER, comment) != comment
    assert texts(github) == [LATER]


@asynchronous
async def test_a_locked_conversation_is_trouble_in_the_hosts_words(github: GithubStage):
    github.open(1)
    body = b'{"message": "Unable to create comment because issue is locked."}'
    github.github.faults.plan(Answers(403, body=body), "/comments", method="POST")
    async with github.host() as host:
        with pytest.raises(HostTrouble, match="issue is locked"):
            await host.say(github.repo, ONE, OURS, None)


# What people say


@asynchronous
async def test_labels_and_what_was_said_since_then_are_read(tmp_path: Path):
    clock = HandClock()
    with github_stage(tmp_path, clock) as stage:
        stage.open(1)
        stage.acme.says(1, "ada", "/merge")
        clock.move_to(later(clock.now(), MINUTE))
        since = clock.now()
        said = stage.acme.says(1, "grace", "/merge cancel")
        stage.acme.labels(1, "merge-queue")
        comment = Comment(id=str(said.id), author="grace", text="/merge cancel", at=since)
        async with stage.host() as host:
            assert await host.thread(stage.repo, ONE, since) == Thread(frozenset({"merge-queue"}), (comment,))
            everything = await host.thread(stage.repo, ONE, Instant(0))
            assert [said.text for said in everything.comments] == ["/merge", "/merge cancel"]


@asynchronous
async def test_every_page_of_a_long_conversation_is_read_in_its_order(github: GithubStage):
    github.open(1)
    for number in range(130):
        github.acme.says(1, "ada", f"{number}")
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
async def test_only_some_roles_may_write_and_fewer_go_around_rules(github: GithubStage, role: str):
    github.acme.roles["grace"] = role
    async with github.host() as host:
        may = await host.may_write(github.repo, "grace", "main"), await host.may_maintain(github.repo, "grace")
        assert may == ROLES[role]


@pytest.mark.parametrize("person", ["nobody", "dependabot[bot]", "a/b", "a?b", "ä"])
@asynchronous
async def test_a_stranger_may_not_write(github: GithubStage, person: str):
    async with github.host() as host:
        assert not await host.may_write(github.repo, person, "main")


@asynchronous
async def test_a_person_that_the_host_does_not_know_may_not_write(github: GithubStage):
    github.github.faults.plan(Answers(404), "/permission")
    async with github.host() as host:
        assert not await host.may_write(github.repo, "ghost", "main")


@asynchronous
async def test_whoever_has_left_may_not_write_and_the_others_are_still_heard(github: GithubStage):
    github.open(1)
    for author in ("", "grace"):
        github.acme.says(1, author, "/merge")
    async with github.host() as host:
        thread = await host.thread(github.repo, ONE, Instant(0))
        assert [comment.author for comment in thread.comments] == ["", "grace"]
        assert not await host.may_write(github.repo, "", "main")
        assert not await host.may_maintain(github.repo, "")


# Reactions and labels


@asynchronous
async def test_a_reaction_shows_whether_a_command_was_taken(github: GithubStage):
    github.open(1)
    said = github.acme.says(1, "grace", "/merge")
    async with github.host() as host:
        for fine in (True, True, False):
            await host.react(github.repo, ONE, str(said.id), fine=fine)
        await host.react(github.repo, ONE, "404", fine=True)
    assert said.reactions == [("ada", "rocket"), ("ada", "confused")]


@pytest.mark.parametrize("label", ["merge-queue", "needs: review / 100%", "ä?#"])
@asynchronous
async def test_a_label_is_taken_off_once_and_again_without_harm(github: GithubStage, label: str):
    github.open(1)
    github.acme.labels(1, "other")
    github.acme.labels(1, label)
    async with github.host() as host:
        await host.unlabel(github.repo, ONE, label)
        await host.unlabel(github.repo, ONE, label)
    assert github.change().labels == ["other"]


# Statuses


@asynchronous
async def test_our_word_on_a_commit_is_shown_and_cut_to_what_fits(github: GithubStage):
    head = github.open(1)
    words = Status(
        context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://queue/1", description="x" * 200
    )
    async with github.host() as host:
        await host.show_status(github.repo, head, words)
    shown = github.acme.reported[head]["mergeyard"]
    assert (shown.state, shown.url, shown.description) == ("pending", "https://queue/1", "x" * 140)


@asynchronous
async def test_a_status_without_a_page_is_shown_without_one(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        words = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
        await host.show_status(github.repo, head, words)
        with pytest.raises(HostTrouble, match="No commit found"):
            await host.show_status(github.repo, Sha("1" * 40), words)
    assert github.acme.reported[head]["mergeyard"].url is None


# Drafts


@asynchronous
async def test_a_draft_is_opened_once_and_closed_once(github: GithubStage):
    github.acme.commits(DRAFT.branch, {"b.txt": "1"})
    async with github.host() as host:
        await host.open_draft(github.repo, DRAFT)
        await host.open_draft(github.repo, DRAFT)
        (change,) = github.acme.changes.values()
        assert (change.draft, change.title, change.text, change.base) == (True, DRAFT.title, DRAFT.text, "main")
        await host.close_draft(github.repo, DRAFT.branch)
        await host.close_draft(github.repo, DRAFT.branch)
    assert not change.open


@asynchronous
async def test_closing_a_draft_leaves_a_branch_of_that_name_in_a_fork_alone(github: GithubStage):
    github.acme.commits(DRAFT.branch, {"b.txt": "1"})
    github.acme.opens(DRAFT.branch, home="mallory/app")
    async with github.host() as host:
        await host.close_draft(github.repo, DRAFT.branch)
    assert github.change(PrNumber(1)).open


@asynchronous
async def test_a_draft_of_a_branch_that_is_not_there_is_trouble(github: GithubStage):
    async with github.host() as host:
        with pytest.raises(HostTrouble, match="422"):
            await host.open_draft(github.repo, DRAFT)
