"""What people say to the queue in comments, and what it answers."""

import pytest

from mergeyard.domain.tokens import Scope
from mergeyard.service.talking.conversation import MAX_STRANGERS_ANSWERED
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_visitor
from tests.support.forge_scenario import SELDOM, USUAL
from tests.support.meeting_places.github import GithubPlace
from tests.support.meeting_places.place import FINE, MAINTAINER, NOT_FINE, STRANGER

QUEUE_NAME = "git.local/acme/app:main"


@asynchronous
async def test_cancel_takes_the_pull_request_out(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.say(1, "/merge cancel")
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.signs(1) == [(FINE,)] * 2
        assert "Taken out of the queue" in scenario.comment(1)


@asynchronous
async def test_restart_tests_it_anew_in_the_same_place(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.say(1, "/merge")
        await scenario.say(2, "/merge")
        before = scenario.run_of(1).id
        await scenario.say(1, "/merge restart")
        assert scenario.run_of(1).id != before
        assert scenario.picture == "main ← 1… ← 2…"
        assert scenario.signs(1) == [(FINE,)] * 2


@asynchronous
async def test_status_is_answered_in_words_to_the_one_who_asked(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge")
        await scenario.say(1, "/merge status")
        (answer,) = scenario.answers(1)
        assert "@ada 🧪 Being tested." in answer


@asynchronous
async def test_a_command_that_cannot_be_carried_out_is_answered_with_the_reason(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge restart")
        (answer,) = scenario.answers(1)
        assert "was never submitted" in answer
        assert scenario.signs(1) == [(NOT_FINE,)]


@asynchronous
async def test_a_command_that_nobody_knows_is_answered_with_those_that_there_are(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge tomorrow")
        (answer,) = scenario.answers(1)
        assert "`tomorrow`" in answer
        assert "`!merge cancel`" in answer
        assert scenario.picture == "main"


@asynchronous
async def test_a_stranger_is_refused_and_nothing_is_done(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(2)
        run = scenario.run_of(2).id
        await scenario.say(1, "/merge", person=STRANGER)
        await scenario.say(2, "/merge cancel", person=STRANGER)
        assert [scenario.signs(number) for number in (1, 2)] == [[(NOT_FINE,)]] * 2
        (answer,) = scenario.answers(2)
        assert f"@{STRANGER} Only people who may write" in answer
        assert scenario.picture == "main ← 2…"
        assert scenario.run_of(2).id == run


@asynchronous
async def test_a_stranger_is_answered_once_on_a_pull_request_and_costs_few_calls_afterwards(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge", person=STRANGER)
        before = scenario.asked()
        for _ in range(4):
            await scenario.say(1, "/merge", person=STRANGER)
        calls_per_command = (scenario.asked() - before) / 4
        assert calls_per_command <= 5  # reads of the pull request, its labels and its comments
        assert len(scenario.answers(1)) == 1
        assert scenario.signs(1) == [(NOT_FINE,), (), (), (), ()]


@asynchronous
async def test_a_stranger_who_gets_write_permission_is_obeyed_some_minutes_later(github_story: Stories):
    async with github_story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge", person="newcomer")
        asked = [call for call in scenario.place.faults.calls if "newcomer/permission" in call]
        await scenario.say(1, "/merge", person="newcomer")
        assert [call for call in scenario.place.faults.calls if "newcomer/permission" in call] == asked
        assert isinstance(scenario.place, GithubPlace)
        scenario.place.acme.roles["newcomer"] = "write"
        for _ in range(6):
            await scenario.a_minute_passes()
        await scenario.say(1, "/merge", person="newcomer")
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_of_a_crowd_of_strangers_only_some_are_answered(github_story: Stories):
    async with github_story() as scenario:
        scenario.open(1)
        for number in range(MAX_STRANGERS_ANSWERED + 2):
            scenario.place.say(1, f"stranger{number}", "/merge")
        await scenario.rest()
        assert len(scenario.answers(1)) == MAX_STRANGERS_ANSWERED


@asynchronous
async def test_only_a_maintainer_can_ask_for_what_passes_others_or_goes_around_the_rules(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge --priority urgent", "/merge --priority 0", "/merge --force")
        assert scenario.picture == "main"
        assert len(scenario.answers(1)) == 3
        assert all("Only maintainers" in answer for answer in scenario.answers(1))
        await scenario.say(1, "/merge --priority urgent", person=MAINTAINER)
        assert (await scenario.stay(1)).priority == 0


@asynchronous
async def test_talk_that_asks_us_for_nothing_is_not_answered(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "Shall we /merge this?", "> /merge", "LGTM\n/merge", "/merged already", person=STRANGER)
        assert scenario.picture == "main"
        assert scenario.answers(1) == []


@asynchronous
async def test_commands_are_obeyed_in_the_order_in_which_they_were_said(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.say(1, "/merge --priority low", "/merge cancel", "/merge --priority high")
        assert (await scenario.stay(1)).priority == 10
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"
        assert scenario.signs(1) == [(FINE,)] * 3


@asynchronous
async def test_our_own_words_are_no_commands(story: Stories):
    """A check may be called whatever somebody likes, and stands in our comment."""
    async with story() as scenario:
        await scenario.update(required_statuses=("/merge cancel",))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1, check="/merge cancel")
        await scenario.passes(check="/merge cancel")
        assert "/merge cancel" in scenario.comment(1)
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


# Forks.


@asynchronous
async def test_of_a_fork_only_the_head_is_tested_that_a_writer_submitted(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        assert scenario.picture == "main ← 1…"
        scenario.push(1, {"evil": "yes"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.picture == "main"


@asynchronous
async def test_a_push_to_a_fork_takes_it_out_even_before_it_is_ready(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        scenario.place.make_draft(1)
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        assert await scenario.state(1) == "not_ready: draft"
        scenario.push(1, {"evil": "yes"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_a_fork_is_merged_and_shown_so(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.place.is_merged(1)
        assert "Merged" in scenario.comment(1)


@asynchronous
async def test_a_fork_is_not_submitted_by_a_label_because_nobody_knows_which_head_was_meant(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.label(1)
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert f"!merge {scenario.place.head(1)}" in answer
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_bare_merge_on_a_fork_is_answered_with_the_line_to_post(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, "/merge")
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert f"`!merge {scenario.place.head(1)}`" in answer
        assert scenario.signs(1) == [(NOT_FINE,)]


@asynchronous
async def test_a_head_that_was_pushed_over_after_the_review_is_not_tested(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        reviewed = scenario.place.head(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.rest()
        await scenario.say(1, f"/merge {reviewed}")
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert "not the head" in answer
        assert f"`!merge {scenario.place.head(1)}`" in answer


@asynchronous
async def test_an_abbreviated_head_is_not_accepted(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        await scenario.say(1, f"/merge {scenario.place.head(1)[:12]}")
        assert scenario.picture == "main"
        (answer,) = scenario.answers(1)
        assert "full SHA" in answer


@asynchronous
async def test_a_head_named_on_a_pull_request_of_the_same_repository_is_pinned(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        scenario.place.make_draft(1)
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        scenario.push(1, {"more": "work"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_the_api_tests_a_fork_only_for_the_head_that_the_request_names(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1)
        reviewed = scenario.place.head(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.rest()
        unnamed = await scenario.ask("submitPullRequest", pr={"number": 1})
        stale = await scenario.ask("submitPullRequest", pr={"number": 1, "sha": reviewed})
        assert [answer.json()["code"] for answer in (unnamed, stale)] == ["sha_required", "sha_mismatch"]
        assert unnamed.status_code == 409
        assert scenario.place.head(1) in unnamed.json()["detail"]
        assert scenario.picture == "main"
        named = await scenario.ask("submitPullRequest", pr={"number": 1, "sha": scenario.place.head(1)})
        assert named.status_code == 200, named.text
        again = await scenario.ask("submitPullRequest", pr={"number": 1}, priority="high")
        assert again.json()["code"] == "sha_required"


# Guarded paths.

WORKFLOW = ".github/workflows/ci.yml"
GUARDS_THE_MAKEFILE = 'version = 1\nrequired_statuses = ["unit"]\nguarded_paths = ["Makefile"]'


@asynchronous
async def test_a_fork_that_changes_ci_files_waits_until_a_maintainer_submits_it(story: Stories):
    async with story() as scenario:
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        head = scenario.place.head(1)
        await scenario.say(1, f"/merge {head}")
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        why = (await scenario.view(1)).why.message
        assert WORKFLOW in why
        assert f"!merge {head}" in why
        assert "workflows/ci.yml" in scenario.comment(1)
        await scenario.say(1, f"/merge {head} --priority high")
        assert scenario.picture == "main"
        await scenario.say(1, f"/merge {head}", person=MAINTAINER)
        assert scenario.picture == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_pull_request_of_the_same_repository_may_change_ci_files(story: Stories):
    async with story() as scenario:
        scenario.open(1, files={WORKFLOW: "on: push"})
        await scenario.say(1, "/merge")
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_force_does_not_skip_the_wait_for_a_maintainer(github_story: Stories):
    async with github_story() as scenario:
        await scenario.open_fork(1, {".mergeyard.toml": "version = 1"})
        await scenario.submit(1, head=scenario.place.head(1), forced=True)
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert scenario.picture == "main"


@asynchronous
async def test_by_api_and_dashboard_a_maintainer_is_who_has_the_scope_admin(github_story: Stories):
    async with github_story() as scenario, a_visitor(scenario, Scope.SUBMIT) as writer:
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        head = scenario.place.head(1)
        _, token = await scenario.service.tokens.create("writer", {Scope.SUBMIT, Scope.PRIORITY})
        by_api = await scenario.ask("submitPullRequest", token=token, pr={"number": 1, "sha": head}, force=True)
        assert by_api.json()["reason"]["code"] == "waiting_for_maintainer"
        await writer.post("/actions/submit", queue=QUEUE_NAME, number=1, head=head)
        await scenario.rest()
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        page = await writer.get("/pulls/git.local/acme/app/1")
        assert "Changes guarded paths" in page.text
        answer = await scenario.ask("submitPullRequest", pr={"number": 1, "sha": head})
        await scenario.rest()
        assert answer.status_code == 200, answer.text
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_the_target_branch_says_which_paths_are_guarded(github_story: Stories):
    async with github_story() as scenario:
        scenario.place.push_to_main({".mergeyard.toml": GUARDS_THE_MAKEFILE})
        await scenario.a_moment_passes()
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        await scenario.open_fork(2, {"Makefile": "test:"})
        await scenario.open_fork(3, {".mergeyard.toml": "version = 1\nguarded_paths = []"})
        for number in (1, 2, 3):
            await scenario.say(number, f"/merge {scenario.place.head(number)}")
        assert scenario.picture == "main ← 1…"
        for number in (2, 3):
            assert await scenario.state(number) == "not_ready: waiting_for_maintainer"


@asynchronous
async def test_a_head_that_the_same_repository_has_too_is_still_examined_for_the_fork(github_story: Stories):
    async with github_story() as scenario:
        scenario.open(1, files={WORKFLOW: "on: push"})
        await scenario.say(1, "/merge")
        await scenario.open_fork(2, {"other": "1"})
        assert isinstance(scenario.place, GithubPlace)
        scenario.place.point_fork_at(2, scenario.place.head(1))
        await scenario.rest()
        await scenario.say(2, f"/merge {scenario.place.head(2)}")
        assert await scenario.state(2) == "not_ready: waiting_for_maintainer"


@pytest.mark.parametrize("heard", [True, False], ids=["while it is tested", "before it lands"])
@asynchronous
async def test_a_fork_waits_again_when_the_target_comes_to_guard_what_it_changes(github_story: Stories, heard: bool):
    async with github_story(poll_seconds=USUAL if heard else SELDOM) as scenario:
        await scenario.open_fork(1, {"Makefile": "test:"})
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        scenario.place.push_to_main({".mergeyard.toml": GUARDS_THE_MAKEFILE})
        await scenario.a_minute_passes()
        if not heard:
            await scenario.passes(1)
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert not scenario.place.is_merged(1)
        assert "Makefile" in scenario.comment(1)


@asynchronous
async def test_a_change_that_a_rename_on_the_target_carries_into_a_guarded_folder_is_seen(github_story: Stories):
    """The merge follows the rename, so that the fork changes a workflow without naming one."""
    content = "".join(f"line {number}\n" for number in range(20))
    async with github_story() as scenario:
        scenario.place.push_to_main({"ci.yml": content})
        await scenario.a_moment_passes()
        await scenario.open_fork(1, {"ci.yml": content + "evil\n"})
        scenario.place.push_to_main({"ci.yml": None, WORKFLOW: content})
        await scenario.a_moment_passes()
        await scenario.say(1, f"/merge {scenario.place.head(1)}")
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert WORKFLOW in (await scenario.view(1)).why.message


# Forms of the dashboard.


@asynchronous
async def test_a_form_without_a_head_shows_the_head_of_a_fork_and_asks_to_confirm_it(github_story: Stories):
    async with github_story() as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        await scenario.open_fork(1)
        asked = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1, no_batch="on")
        head = scenario.place.head(1)
        assert asked.status == 409
        assert head in asked.one(".said").text
        assert any("/pull/1" in link for link in asked.links())
        await scenario.rest()
        assert scenario.picture == "main"
        in_place = await visitor.post_in_place("/actions/submit", queue=QUEUE_NAME, number=1)
        assert in_place.one("[name=head]")["value"] == head
        fields = {field["name"]: field["value"] for field in asked.all("input[name]")}
        confirmed = await visitor.post("/actions/submit", **fields)
        await scenario.rest()
        assert confirmed.status == 303
        assert scenario.picture == "main ← 1…"
        assert (await scenario.stay(1)).no_batch


@asynchronous
async def test_a_form_that_shows_a_stale_head_is_refused(github_story: Stories):
    async with github_story() as scenario, a_visitor(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        act = await visitor.get(f"/actions?queue={QUEUE_NAME}&number=1")
        page = await visitor.get("/pulls/git.local/acme/app/1")
        shown = [each.one("[name=head]")["value"] for each in (act, page)]
        assert shown == [scenario.place.head(1)] * 2
        scenario.push(1, {"evil": "yes"})
        refused = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1, head=shown[0])
        assert refused.status == 409
        assert "got new commits" in refused.text
        assert scenario.place.head(1) in refused.text
        await scenario.rest()
        assert scenario.picture == "main"
