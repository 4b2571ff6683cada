"""What people and we say to each other on GitLab, and who they are."""

import pytest

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.ports.forge import Draft
from mergeyard.ports.host import HostRefused, HostTrouble
from tests.contract.host.gitlab_stage import GitlabStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers, LosesReply
from tests.support.forges.gitlab.nouns import DELETED, DEVELOPER, Note, Person
from tests.support.forges.gitlab.world import OURS

MARK = "<!-- mergeyard: 7 -->"
EVER = Instant(0)


def notes(gitlab: GitlabStage) -> list[tuple[str, str]]:
    return [(note.author.username, note.body) for note in gitlab.request().notes]


# Our comment


@asynchronous
async def test_what_we_said_is_said_again_in_the_same_place(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        assert await host.say(gitlab.repo, ONE, f"{MARK}\nmerged", first) == first
    assert notes(gitlab) == [(OURS, f"{MARK}\nmerged")]


@asynchronous
async def test_a_lost_reply_makes_no_second_comment(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(LosesReply(), "/notes$", method="POST")
        with pytest.raises(HostTrouble):
            await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        await host.say(gitlab.repo, ONE, f"{MARK}\ntesting", None)
    assert notes(gitlab) == [(OURS, f"{MARK}\ntesting")]


@asynchronous
async def test_a_comment_that_somebody_removed_is_made_anew(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        gitlab.request().notes.clear()
        second = await host.say(gitlab.repo, ONE, f"{MARK}\nmerged", first)
    assert second != first
    assert notes(gitlab) == [(OURS, f"{MARK}\nmerged")]


@asynchronous
async def test_also_one_made_anew_is_made_once_when_the_reply_is_lost(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        gitlab.request().notes.clear()
        gitlab.gitlab.faults.plan(LosesReply(), "/notes$", method="POST")
        with pytest.raises(HostTrouble):
            await host.say(gitlab.repo, ONE, f"{MARK}\nmerged", first)
        await host.say(gitlab.repo, ONE, f"{MARK}\nmerged", first)
    assert notes(gitlab) == [(OURS, f"{MARK}\nmerged")]


@asynchronous
async def test_a_comment_of_somebody_else_is_never_ours(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.acts.say(gitlab.project, gitlab.request(), f"{MARK}\nI am the queue", by="ada")
    async with gitlab.host() as host:
        await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
    assert notes(gitlab) == [("ada", f"{MARK}\nI am the queue"), (OURS, f"{MARK}\nwaiting")]


@asynchronous
async def test_gitlab_obeys_nothing_that_we_only_quote(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        comment = await host.say(gitlab.repo, ONE, f"{MARK}\nThe title was:\n/close\r/merge\r\n  /merge", None)
        await host.say(gitlab.repo, ONE, f"{MARK}\n/close", comment)
    assert gitlab.request().state == "opened"
    assert notes(gitlab) == [(OURS, f"{MARK}\n\\/close")]


@asynchronous
async def test_trouble_while_we_speak_is_told(gitlab: GitlabStage):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(Answers(403), "/notes", method="POST")
        with pytest.raises(HostRefused):
            await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        with pytest.raises(HostRefused):
            await host.say(gitlab.repo, PrNumber(9), f"{MARK}\nwaiting", None)
        gitlab.gitlab.faults.plan(Answers(503), "/notes", method="POST")
        with pytest.raises(HostTrouble) as trouble:
            await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        assert not isinstance(trouble.value, HostRefused)


# What people say


@asynchronous
async def test_a_thread_has_labels_and_comments_oldest_first_without_what_gitlab_notes_itself(gitlab: GitlabStage):
    gitlab.open(1)
    request = gitlab.request()
    request.labels.append("merge-queue")
    gitlab.acts.say(gitlab.project, request, "first", by="ada")
    request.notes.append(Note(9, gitlab.world.person("ada"), "added 1 commit", gitlab.world.now(), system=True))
    gitlab.acts.say(gitlab.project, request, "second", by="grace")
    async with gitlab.host() as host:
        thread = await host.thread(gitlab.repo, ONE, EVER)
    assert thread.labels == {"merge-queue"}
    assert [(comment.author, comment.text) for comment in thread.comments] == [("ada", "first"), ("grace", "second")]
    assert thread.comments[0].at < thread.comments[1].at


@asynchronous
async def test_an_order_to_gitlab_itself_is_never_heard_as_a_comment(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.acts.say(gitlab.project, gitlab.request(), "/merge --priority high", by="ada")
    async with gitlab.host() as host:
        assert (await host.thread(gitlab.repo, ONE, EVER)).comments == ()
    assert gitlab.request().state == "merged"


@asynchronous
async def test_a_command_that_gitlab_does_not_know_reaches_us_as_it_was_said(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.acts.say(gitlab.project, gitlab.request(), "!merge --priority high", by="ada")
    async with gitlab.host() as host:
        (comment,) = (await host.thread(gitlab.repo, ONE, EVER)).comments
    assert comment.text == "!merge --priority high"
    assert gitlab.request().state == "opened"


@asynchronous
async def test_what_somebody_said_whose_account_is_gone_was_said_by_nobody(gitlab: GitlabStage):
    gitlab.open(1)
    eve = Person(7, "eve", state=DELETED)
    gitlab.request().notes.append(Note(9, eve, f"{MARK}\n!merge", gitlab.world.now()))
    async with gitlab.host() as host:
        (comment,) = (await host.thread(gitlab.repo, ONE, EVER)).comments
        assert comment.author == ""
        asked = len(gitlab.gitlab.faults.calls)
        assert not await host.may_write(gitlab.repo, "", "main")
        assert len(gitlab.gitlab.faults.calls) == asked
        await host.say(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
    assert [body for _, body in notes(gitlab)] == [f"{MARK}\n!merge", f"{MARK}\nwaiting"]


@asynchronous
async def test_on_a_merge_request_that_is_gone_nobody_can_be_heard(gitlab: GitlabStage):
    async with gitlab.host() as host:
        with pytest.raises(HostRefused, match="gone"):
            await host.thread(gitlab.repo, ONE, EVER)
        await host.unlabel(gitlab.repo, ONE, "merge-queue")


@asynchronous
async def test_a_long_thread_is_read_back_to_where_we_were(gitlab: GitlabStage):
    gitlab.open(1)
    for number in range(250):
        gitlab.acts.say(gitlab.project, gitlab.request(), str(number), by="ada")
    async with gitlab.host() as host:
        everything = (await host.thread(gitlab.repo, ONE, EVER)).comments
        assert [comment.text for comment in everything] == [str(number) for number in range(250)]
        newer = (await host.thread(gitlab.repo, ONE, everything[200].at)).comments
        assert newer[-50:] == everything[-50:]
        assert len(newer) == 100


@asynchronous
async def test_we_answer_with_a_reaction_and_once_is_enough(gitlab: GitlabStage):
    gitlab.open(1)
    good = gitlab.acts.say(gitlab.project, gitlab.request(), "@queue merge", by="ada")
    bad = gitlab.acts.say(gitlab.project, gitlab.request(), "@queue fly", by="ada")
    async with gitlab.host() as host:
        for _ in range(2):
            await host.react(gitlab.repo, ONE, str(good.id), fine=True)
            await host.react(gitlab.repo, ONE, str(bad.id), fine=False)
        await host.react(gitlab.repo, ONE, "12345", fine=True)
    assert [reaction.name for reaction in (*good.reactions, *bad.reactions)] == ["rocket", "confused"]


@asynchronous
async def test_only_the_named_label_is_taken_off(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.request().labels = ["bug", "merge-queue"]
    async with gitlab.host() as host:
        await host.unlabel(gitlab.repo, ONE, "merge-queue")
        await host.unlabel(gitlab.repo, ONE, "merge-queue")
    assert gitlab.request().labels == ["bug"]


# Who they are


@asynchronous
async def test_only_developers_and_those_above_may_write(gitlab: GitlabStage):
    gitlab.world.people["mallory"] = Person(7, "mallory", state="blocked")
    gitlab.project.members |= {"reporter": 20, "adamant": 50, "grace": 40, "mallory": 50}
    gitlab.project.protected.clear()
    async with gitlab.host() as host:
        people = ["ada", "ADA", "grace", "ad", "reporter", "mallory", "stranger", ""]
        writers = [person for person in people if await host.may_write(gitlab.repo, person, "main")]
    assert gitlab.project.members["ada"] == DEVELOPER
    assert writers == ["ada", "ADA", "grace"]


@pytest.mark.parametrize(
    ("mergers", "expected"),
    [
        ([{"access_level": 40}], ["grace", "owen"]),
        ([{"access_level": 30}], ["ada", "grace", "owen"]),
        ([{"access_level": 0}], []),
        ([{"access_level": 60}], []),
        ([{"access_level": 0}, {"user_id": 301}], ["ada"]),
        ([{"access_level": 40, "user_id": 301}], ["ada"]),
        ([{"user_id": 303}], []),
        ([{"group_id": 5}], ["ada", "owen"]),
        ([{"group_id": 6}], []),
        ([{"access_level": 40, "deploy_key_id": 1}], []),
    ],
)
@pytest.mark.parametrize("rule", ["main", "ma*", "*"])
@asynchronous
async def test_commands_need_the_right_to_merge_into_a_protected_branch(
    gitlab: GitlabStage, rule: str, mergers: list[dict[str, int]], expected: list[str]
):
    people = {"ada": 301, "grace": 302, "owen": 303, "reporter": 304}
    gitlab.world.people |= {name: Person(number, name) for name, number in people.items()}
    gitlab.world.groups[5] = ["ada", "owen", "reporter"]
    gitlab.project.members |= {"grace": 40, "owen": 50, "reporter": 20}
    gitlab.project.protected = {rule: 0, "release-*": 30}
    gitlab.project.mergers[rule] = mergers
    if mergers == [{"user_id": 303}]:
        del gitlab.project.members["owen"]
    async with gitlab.host() as host:
        allowed = [person for person in people if await host.may_write(gitlab.repo, person, "main")]
    assert allowed == expected


@asynchronous
async def test_of_several_rules_for_a_branch_the_most_permissive_counts(gitlab: GitlabStage):
    gitlab.project.protected = {"main": 40, "m*": 30}
    async with gitlab.host() as host:
        assert await host.may_write(gitlab.repo, "ada", "main")
        gitlab.project.protected = {"main": 40, "n*": 30}
        assert not await host.may_write(gitlab.repo, "ada", "main")


@asynchronous
async def test_where_the_rules_of_a_branch_cannot_be_read_developers_may_write(gitlab: GitlabStage):
    gitlab.gitlab.faults.plan(Answers(403), "/protected_branches$")
    async with gitlab.host() as host:
        assert await host.may_write(gitlab.repo, "ada", "main")


@asynchronous
async def test_where_we_may_not_see_who_may_write_it_is_said_so(gitlab: GitlabStage):
    gitlab.gitlab.faults.plan(Answers(403), "/members/all$")
    async with gitlab.host() as host:
        with pytest.raises(HostRefused):
            await host.may_write(gitlab.repo, "ada", "main")


# Drafts


@asynchronous
async def test_a_test_branch_is_shown_once_as_a_draft_until_it_is_closed(gitlab: GitlabStage):
    branch = "mergeyard/pr-1/x"
    gitlab.origin.branch(branch, upon="main", files={"b.txt": "1"})
    draft = Draft(branch=branch, base="main", title="Testing 1 and 2", text="Do not merge.\n/close")
    async with gitlab.host() as host:
        await host.open_draft(gitlab.repo, draft)
        await host.open_draft(gitlab.repo, draft)
        (shown,) = gitlab.project.merge_requests.values()
        assert (shown.title, shown.draft, shown.state) == ("Draft: Testing 1 and 2", True, "opened")
        assert shown.description == "Do not merge.\n\\/close"
        await host.close_draft(gitlab.repo, branch)
        await host.close_draft(gitlab.repo, branch)
        assert shown.state == "closed"


@asynchronous
async def test_a_draft_is_closed_also_when_its_branch_is_gone(gitlab: GitlabStage):
    branch = "mergeyard/pr-1/x"
    gitlab.origin.branch(branch, upon="main", files={"b.txt": "1"})
    async with gitlab.host() as host:
        await host.open_draft(gitlab.repo, Draft(branch=branch, base="main", title="Testing 1", text=""))
        gitlab.origin.run("update-ref", "-d", f"refs/heads/{branch}")
        assert gitlab.request().state == "opened"
        await host.close_draft(gitlab.repo, branch)
    assert gitlab.request().state == "closed"


@asynchronous
async def test_a_draft_that_gitlab_will_not_have_is_refused_for_good(gitlab: GitlabStage):
    gitlab.gitlab.faults.plan(Answers(422), "/merge_requests$", method="POST")
    async with gitlab.host() as host:
        with pytest.raises(HostRefused):
            await host.open_draft(gitlab.repo, Draft(branch="mergeyard/pr-1/x", base="main", title="", text=""))


@asynchronous
async def test_a_branch_of_the_same_name_in_a_fork_is_none_of_our_business(gitlab: GitlabStage):
    fork = gitlab.gitlab.project("ada/app")
    fork.origin.branch("mergeyard/pr-1/x", upon="main", files={"b.txt": "1"})
    gitlab.acts.open(gitlab.project, "mergeyard/pr-1/x", source=fork)
    async with gitlab.host() as host:
        await host.close_draft(gitlab.repo, "mergeyard/pr-1/x")
    assert gitlab.request().state == "opened"
