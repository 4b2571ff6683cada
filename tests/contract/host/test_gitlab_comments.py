"""Comments, threads, labels, permissions and drafts on GitLab."""

import pytest

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import DraftPullRequest, HostRefused, HostUnavailable
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import LosesResponse, RespondsWith
from tests.support.forges.gitlab.world import BOT, DELETED, DEVELOPER, TOKEN, Note, Token, User

MARK = "<!-- mergeyard: 7 -->"
EVER = Instant(0)


def notes(gitlab: GitlabEnvironment) -> list[tuple[str, str]]:
    return [(note.author.username, note.body) for note in gitlab.request().notes]


# Our comment


@asynchronous
async def test_our_comment_is_edited_in_place(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        assert await host.put_comment(gitlab.repo, ONE, f"{MARK}\nmerged", first) == first
    assert notes(gitlab) == [(BOT, f"{MARK}\nmerged")]


@asynchronous
async def test_a_lost_response_makes_no_second_comment(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(LosesResponse(), "/notes$", method="POST")
        with pytest.raises(HostUnavailable):
            await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        await host.put_comment(gitlab.repo, ONE, f"{MARK}\ntesting", None)
    assert notes(gitlab) == [(BOT, f"{MARK}\ntesting")]


@asynchronous
async def test_a_deleted_comment_is_posted_again(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        gitlab.request().notes.clear()
        second = await host.put_comment(gitlab.repo, ONE, f"{MARK}\nmerged", first)
    assert second != first
    assert notes(gitlab) == [(BOT, f"{MARK}\nmerged")]


@asynchronous
async def test_a_comment_that_is_posted_again_is_posted_once_though_the_response_is_lost(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        gitlab.request().notes.clear()
        gitlab.gitlab.faults.plan(LosesResponse(), "/notes$", method="POST")
        with pytest.raises(HostUnavailable):
            await host.put_comment(gitlab.repo, ONE, f"{MARK}\nmerged", first)
        await host.put_comment(gitlab.repo, ONE, f"{MARK}\nmerged", first)
    assert notes(gitlab) == [(BOT, f"{MARK}\nmerged")]


@asynchronous
async def test_a_comment_of_another_user_is_never_edited(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), f"{MARK}\nI am the queue", by="ada")
    async with gitlab.host() as host:
        await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
    assert notes(gitlab) == [("ada", f"{MARK}\nI am the queue"), (BOT, f"{MARK}\nwaiting")]


@asynchronous
async def test_a_comment_of_our_former_account_is_replaced_by_our_own(gitlab: GitlabEnvironment):
    """A new project token has a new account, and a Developer cannot edit comments of another one."""
    gitlab.open(1)
    gitlab.project.members[BOT] = DEVELOPER
    former = gitlab.acts.add_note(gitlab.project, gitlab.request(), f"{MARK}\nwaiting", by="former-bot")
    async with gitlab.host() as host:
        ours = await host.put_comment(gitlab.repo, ONE, f"{MARK}\ntesting", str(former.id))
        assert await host.put_comment(gitlab.repo, ONE, f"{MARK}\nmerged", str(former.id)) == ours
    assert notes(gitlab) == [("former-bot", f"{MARK}\nwaiting"), (BOT, f"{MARK}\nmerged")]


@asynchronous
async def test_gitlab_does_not_run_commands_in_our_quotes(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        comment = await host.put_comment(gitlab.repo, ONE, f"{MARK}\nThe title was:\n/close\r/merge\r\n  /merge", None)
        await host.put_comment(gitlab.repo, ONE, f"{MARK}\n/close", comment)
    assert gitlab.request().state == "opened"
    assert notes(gitlab) == [(BOT, f"{MARK}\n\\/close")]


@asynchronous
async def test_an_error_while_commenting_is_raised(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RespondsWith(403), "/notes", method="POST")
        with pytest.raises(HostRefused):
            await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        with pytest.raises(HostRefused):
            await host.put_comment(gitlab.repo, PullRequestNumber(9), f"{MARK}\nwaiting", None)
        gitlab.gitlab.faults.plan(RespondsWith(503), "/notes", method="POST")
        with pytest.raises(HostUnavailable) as error:
            await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
        assert not isinstance(error.value, HostRefused)


# Threads


@asynchronous
async def test_a_thread_has_labels_and_comments_oldest_first_without_what_gitlab_notes_itself(
    gitlab: GitlabEnvironment,
):
    gitlab.open(1)
    request = gitlab.request()
    request.labels.append("merge-queue")
    gitlab.acts.add_note(gitlab.project, request, "first", by="ada")
    request.notes.append(Note(9, gitlab.world.user("ada"), "added 1 commit", gitlab.world.now(), system=True))
    gitlab.acts.add_note(gitlab.project, request, "second", by="grace")
    async with gitlab.host() as host:
        thread = await host.thread(gitlab.repo, ONE, EVER)
    assert thread.labels == {"merge-queue"}
    assert [(comment.author, comment.text) for comment in thread.comments] == [("ada", "first"), ("grace", "second")]
    assert thread.comments[0].at < thread.comments[1].at


@asynchronous
async def test_a_comment_that_changed_counts_as_edited(gitlab: GitlabEnvironment):
    """GitLab does not tell an edit from an emoji."""
    gitlab.open(1)
    request, ada = gitlab.request(), gitlab.world.user("ada")
    plain, edited, praised = [gitlab.acts.add_note(gitlab.project, request, "hello", by="grace") for _ in range(3)]
    gitlab.acts.edit_note(gitlab.project, request, edited, "!merge")
    gitlab.acts.react(praised, ada, "tada")
    async with gitlab.host() as host:
        read = {each.id: each for each in (await host.thread(gitlab.repo, ONE, EVER)).comments}
        found = [await host.is_edited(gitlab.repo, ONE, read[str(note.id)]) for note in (plain, edited, praised)]
    assert found == [False, True, True]


@asynchronous
async def test_a_quick_action_of_gitlab_is_not_read_as_a_comment(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "/merge --priority high", by="ada")
    async with gitlab.host() as host:
        assert (await host.thread(gitlab.repo, ONE, EVER)).comments == ()
    assert gitlab.request().state == "merged"


@asynchronous
async def test_a_command_that_gitlab_does_not_know_is_read_unchanged(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "!merge --priority high", by="ada")
    async with gitlab.host() as host:
        (comment,) = (await host.thread(gitlab.repo, ONE, EVER)).comments
    assert comment.text == "!merge --priority high"
    assert gitlab.request().state == "opened"


@asynchronous
async def test_a_comment_of_a_deleted_account_is_no_command_of_a_member(gitlab: GitlabEnvironment):
    gitlab.open(1)
    eve = User(7, "eve", state=DELETED)
    gitlab.request().notes.append(Note(9, eve, f"{MARK}\n!merge", gitlab.world.now()))
    async with gitlab.host() as host:
        (comment,) = (await host.thread(gitlab.repo, ONE, EVER)).comments
        assert comment.author == "ghost"
        assert not await host.can_write(gitlab.repo, "ghost", "main")
        asked = len(gitlab.gitlab.faults.calls)
        assert not await host.can_write(gitlab.repo, "", "main")
        assert len(gitlab.gitlab.faults.calls) == asked
        await host.put_comment(gitlab.repo, ONE, f"{MARK}\nwaiting", None)
    assert [body for _, body in notes(gitlab)] == [f"{MARK}\n!merge", f"{MARK}\nwaiting"]


@asynchronous
async def test_reading_the_thread_of_a_deleted_merge_request_is_refused(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        with pytest.raises(HostRefused, match="gone"):
            await host.thread(gitlab.repo, ONE, EVER)
        await host.remove_label(gitlab.repo, ONE, "merge-queue")


@asynchronous
async def test_a_long_thread_is_read_back_to_the_last_read_comment(gitlab: GitlabEnvironment):
    gitlab.open(1)
    for number in range(250):
        gitlab.acts.add_note(gitlab.project, gitlab.request(), str(number), by="ada")
    async with gitlab.host() as host:
        everything = (await host.thread(gitlab.repo, ONE, EVER)).comments
        assert [comment.text for comment in everything] == [str(number) for number in range(250)]
        newer = (await host.thread(gitlab.repo, ONE, everything[200].at)).comments
        assert newer[-50:] == everything[-50:]
        assert len(newer) == 100


@asynchronous
async def test_a_page_of_which_gitlab_hides_comments_is_not_taken_for_the_last_one(gitlab: GitlabEnvironment):
    gitlab.open(1)
    for number in range(150):
        note = gitlab.acts.add_note(gitlab.project, gitlab.request(), str(number), by="ada")
        note.is_hidden = number in (60, 149)
    async with gitlab.host() as host:
        comments = (await host.thread(gitlab.repo, ONE, EVER)).comments
    assert [comment.text for comment in comments] == [str(number) for number in range(150) if number not in (60, 149)]


@asynchronous
async def test_what_gitlab_notes_itself_is_not_requested(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "!merge", by="ada")
    ada = gitlab.world.user("ada")
    for number in range(250):
        gitlab.request().notes.append(Note(1000 + number, ada, "added 1 commit", gitlab.world.now(), system=True))
    async with gitlab.host() as host:
        before = len(gitlab.gitlab.faults.calls)
        (comment,) = (await host.thread(gitlab.repo, ONE, EVER)).comments
        assert (comment.text, len(gitlab.gitlab.faults.calls) - before) == ("!merge", 2)


@asynchronous
async def test_a_command_is_reacted_to_once(gitlab: GitlabEnvironment):
    gitlab.open(1)
    good = gitlab.acts.add_note(gitlab.project, gitlab.request(), "@queue merge", by="ada")
    bad = gitlab.acts.add_note(gitlab.project, gitlab.request(), "@queue fly", by="ada")
    async with gitlab.host() as host:
        for _ in range(2):
            await host.react(gitlab.repo, ONE, str(good.id), success=True)
            await host.react(gitlab.repo, ONE, str(bad.id), success=False)
        await host.react(gitlab.repo, ONE, "12345", success=True)
    assert [reaction.name for reaction in (*good.reactions, *bad.reactions)] == ["rocket", "confused"]


@asynchronous
async def test_only_the_named_label_is_removed(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().labels = ["bug", "merge-queue"]
    async with gitlab.host() as host:
        await host.remove_label(gitlab.repo, ONE, "merge-queue")
        await host.remove_label(gitlab.repo, ONE, "merge-queue")
    assert gitlab.request().labels == ["bug"]


# Permissions


@asynchronous
async def test_only_developers_and_higher_roles_can_write(gitlab: GitlabEnvironment):
    gitlab.world.users["mallory"] = User(7, "mallory", state="blocked")
    gitlab.project.members |= {"reporter": 20, "adamant": 50, "grace": 40, "mallory": 50}
    gitlab.project.protected.clear()
    async with gitlab.host() as host:
        people = ["ada", "ADA", "grace", "ad", "reporter", "mallory", "stranger", ""]
        writers = [person for person in people if await host.can_write(gitlab.repo, person, "main")]
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
    gitlab: GitlabEnvironment, rule: str, mergers: list[dict[str, int]], expected: list[str]
):
    people = {"ada": 301, "grace": 302, "owen": 303, "reporter": 304}
    gitlab.world.users |= {name: User(number, name) for name, number in people.items()}
    gitlab.world.groups[5] = ["ada", "owen", "reporter"]
    gitlab.project.members |= {"grace": 40, "owen": 50, "reporter": 20}
    gitlab.project.protected = {rule: 0, "release-*": 30}
    gitlab.project.merge_access[rule] = mergers
    if mergers == [{"user_id": 303}]:
        del gitlab.project.members["owen"]
    async with gitlab.host() as host:
        allowed = [person for person in people if await host.can_write(gitlab.repo, person, "main")]
    assert allowed == expected


@asynchronous
async def test_the_most_permissive_of_several_branch_rules_counts(gitlab: GitlabEnvironment):
    gitlab.project.protected = {"main": 40, "m*": 30}
    async with gitlab.host() as host:
        assert await host.can_write(gitlab.repo, "ada", "main")
        gitlab.project.protected = {"main": 40, "n*": 30}
        assert not await host.can_write(gitlab.repo, "ada", "main")


@pytest.mark.parametrize(
    ("pushers", "mergers", "submitters"),
    [
        # Only our account can merge
        ([{"user_id": 401}], [{"access_level": 0}], ["ada", "grace"]),
        ([{"access_level": 0}], [{"user_id": 401}], ["ada", "grace"]),
        # Our account can push because of its role, as on a plan that cannot name single accounts
        ([{"access_level": 40}], [{"access_level": 0}], ["ada", "grace"]),
        # Others can merge, so others decide
        ([{"user_id": 401}], [{"access_level": 40}], ["grace"]),
        ([{"user_id": 401}], [{"user_id": 302}], ["grace"]),
        # Our account cannot merge either
        ([{"access_level": 0}], [{"access_level": 0}], []),
        ([{"user_id": 302}], [{"access_level": 0}], ["grace"]),
    ],
)
@asynchronous
async def test_every_developer_can_submit_to_a_mandatory_queue(
    gitlab: GitlabEnvironment, pushers: list[dict[str, int]], mergers: list[dict[str, int]], submitters: list[str]
):
    people = {"ada": 301, "grace": 302, "reporter": 303}
    gitlab.world.users |= {name: User(number, name) for name, number in people.items()}
    gitlab.world.users[BOT] = User(401, BOT)
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.users[BOT])
    gitlab.project.members |= {"grace": 40, "reporter": 20}
    gitlab.project.push_access["main"], gitlab.project.merge_access["main"] = pushers, mergers
    async with gitlab.host() as host:
        allowed = [person for person in (*people, "stranger") if await host.can_write(gitlab.repo, person, "main")]
    assert allowed == submitters


@asynchronous
async def test_if_branch_rules_cannot_be_read_developers_can_write(gitlab: GitlabEnvironment):
    gitlab.gitlab.faults.plan(RespondsWith(403), "/protected_branches$")
    async with gitlab.host() as host:
        assert await host.can_write(gitlab.repo, "ada", "main")


@asynchronous
async def test_branch_rules_that_gitlab_does_not_show_now_are_not_taken_for_none(gitlab: GitlabEnvironment):
    gitlab.gitlab.faults.plan(RespondsWith(404), "/protected_branches$")
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable) as raised:
            await host.can_write(gitlab.repo, "ada", "main")
        assert not isinstance(raised.value, HostRefused)


@asynchronous
async def test_unreadable_permissions_are_an_error(gitlab: GitlabEnvironment):
    gitlab.gitlab.faults.plan(RespondsWith(403), "/members/all$")
    async with gitlab.host() as host:
        with pytest.raises(HostRefused):
            await host.can_write(gitlab.repo, "ada", "main")


# Drafts


@asynchronous
async def test_a_test_branch_is_shown_once_as_a_draft_until_it_is_closed(gitlab: GitlabEnvironment):
    branch = "mergeyard/pr-1/x"
    gitlab.origin.branch(branch, base="main", files={"b.txt": "1"})
    draft = DraftPullRequest(branch=branch, base_branch="main", title="Testing 1 and 2", text="Do not merge.\n/close")
    async with gitlab.host() as host:
        await host.open_draft(gitlab.repo, draft)
        await host.open_draft(gitlab.repo, draft)
        (opened_draft,) = gitlab.project.merge_requests.values()
        assert not await host.open_pull_requests(gitlab.repo, "main")
        assert (opened_draft.title, opened_draft.draft, opened_draft.state) == (
            "Draft: Testing 1 and 2",
            True,
            "opened",
        )
        assert opened_draft.description == "Do not merge.\n\\/close"
        await host.close_draft(gitlab.repo, branch)
        await host.close_draft(gitlab.repo, branch)
        assert opened_draft.state == "closed"


@asynchronous
async def test_a_draft_is_closed_also_when_its_branch_is_gone(gitlab: GitlabEnvironment):
    branch = "mergeyard/pr-1/x"
    gitlab.origin.branch(branch, base="main", files={"b.txt": "1"})
    async with gitlab.host() as host:
        await host.open_draft(
            gitlab.repo, DraftPullRequest(branch=branch, base_branch="main", title="Testing 1", text="")
        )
        gitlab.origin.run("update-ref", "-d", f"refs/heads/{branch}")
        assert gitlab.request().state == "opened"
        await host.close_draft(gitlab.repo, branch)
    assert gitlab.request().state == "closed"


@asynchronous
async def test_a_draft_that_gitlab_rejects_is_refused_permanently(gitlab: GitlabEnvironment):
    gitlab.gitlab.faults.plan(RespondsWith(422), "/merge_requests$", method="POST")
    async with gitlab.host() as host:
        with pytest.raises(HostRefused):
            await host.open_draft(
                gitlab.repo, DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="", text="")
            )


@asynchronous
async def test_a_branch_of_the_same_name_in_a_fork_is_ignored(gitlab: GitlabEnvironment):
    fork = gitlab.gitlab.create_project("ada/app")
    fork.origin.branch("mergeyard/pr-1/x", base="main", files={"b.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "mergeyard/pr-1/x", source=fork)
    async with gitlab.host() as host:
        await host.close_draft(gitlab.repo, "mergeyard/pr-1/x")
    assert gitlab.request().state == "opened"
