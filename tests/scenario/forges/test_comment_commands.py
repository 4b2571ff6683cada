"""Commands in comments, and the replies."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueKey
from mergeyard.ports.forge import Host
from mergeyard.service.comments.commands import MAX_DENIED_USERS_ANSWERED
from mergeyard.wiring import build_forge_config
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import MAINTAINER, NEGATIVE, POSITIVE, STRANGER
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import LABEL, RARE_POLL_INTERVAL_S, USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.forges.faults import RespondsWith
from tests.support.scenario import KEY, MINUTE, SECOND, ScenarioSetup
from tests.support.web_client import a_signed_in_client

QUEUE_NAME = "git.local/acme/app:main"


@asynchronous
async def test_cancel_removes_the_pr(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        await scenario.comment(1, "/merge cancel")
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.reactions(1) == [(POSITIVE,)] * 2
        assert "🚫 Removed" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_restart_tests_the_pr_again_at_the_same_position(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.comment(1, "/merge")
        await scenario.comment(2, "/merge")
        before = scenario.run_of(1).id
        await scenario.comment(1, "/merge restart")
        assert scenario.run_of(1).id != before
        assert scenario.queue_text == "main ← 1… ← 2…"
        assert scenario.reactions(1) == [(POSITIVE,)] * 2


@asynchronous
async def test_status_command_gets_a_reply_that_mentions_the_user(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        await scenario.comment(1, "/merge status")
        (answer,) = scenario.replies(1)
        assert "@ada 🧪 Testing." in answer


@asynchronous
async def test_refused_command_gets_a_reply_with_the_reason(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge restart")
        (answer,) = scenario.replies(1)
        assert "was never submitted" in answer
        assert scenario.reactions(1) == [(NEGATIVE,)]


@asynchronous
async def test_help_replies_with_the_list_of_commands_and_submits_nothing(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge help")
        (answer,) = scenario.replies(1)
        assert "I do not know" not in answer
        assert f"`{scenario.forge.command_prefix} restart`" in answer
        assert scenario.queue_text == "main"


@asynchronous
async def test_unknown_command_gets_a_reply_with_the_list_of_commands(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge tomorrow")
        (answer,) = scenario.replies(1)
        assert "`tomorrow`" in answer
        assert f"`{scenario.forge.command_prefix} cancel`" in answer
        assert scenario.queue_text == "main"


@asynchronous
async def test_command_of_a_user_without_write_permission_is_refused(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(2)
        run = scenario.run_of(2).id
        await scenario.comment(1, "/merge", person=STRANGER)
        await scenario.comment(2, "/merge cancel", person=STRANGER)
        assert [scenario.reactions(number) for number in (1, 2)] == [[(NEGATIVE,)]] * 2
        (answer,) = scenario.replies(2)
        assert f"@{STRANGER} Only users with write access" in answer
        assert scenario.queue_text == "main ← 2…"
        assert scenario.run_of(2).id == run


@asynchronous
async def test_user_without_write_permission_gets_one_reply_per_pr_and_costs_few_calls_afterwards(
    forge_scenario: StartScenario,
):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge", person=STRANGER)
        before = scenario.api_call_count()
        for _ in range(4):
            await scenario.comment(1, "/merge", person=STRANGER)
        calls_per_command = (scenario.api_call_count() - before) / 4
        assert calls_per_command <= 5  # reads of the pull request, its labels and its comments
        assert len(scenario.replies(1)) == 1
        assert scenario.reactions(1) == [(NEGATIVE,), (), (), (), ()]


@pytest.mark.long
@asynchronous
async def test_new_write_permission_is_recognized_within_minutes(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge", person="newcomer")
        asked = [call for call in scenario.forge.faults.calls if "newcomer/permission" in call]
        await scenario.comment(1, "/merge", person="newcomer")
        assert [call for call in scenario.forge.faults.calls if "newcomer/permission" in call] == asked
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.acme.roles["newcomer"] = "write"
        for _ in range(6):
            await scenario.advance_one_minute()
        await scenario.comment(1, "/merge", person="newcomer")
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_only_some_of_many_users_without_write_permission_get_a_reply(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        for number in range(MAX_DENIED_USERS_ANSWERED + 2):
            scenario.forge.comment(1, f"stranger{number}", "/merge")
        await scenario.wait_until_idle()
        assert len(scenario.replies(1)) == MAX_DENIED_USERS_ANSWERED


@asynchronous
async def test_only_a_maintainer_can_submit_as_urgent_or_forced(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge --priority urgent", "/merge --priority 0", "/merge --force")
        assert scenario.queue_text == "main"
        assert len(scenario.replies(1)) == 3
        assert all("can use `--force` or `--priority urgent`" in answer for answer in scenario.replies(1))
        await scenario.comment(1, "/merge --priority urgent", person=MAINTAINER)
        assert (await scenario.submission(1)).priority == 0


@asynchronous
async def test_anyone_with_write_access_can_submit_as_urgent_where_the_settings_permit_it(
    forge_scenario: StartScenario,
):
    async with forge_scenario(setup=ScenarioSetup(hosts_with_urgent_writers=(KEY.repo.host,))) as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge --priority urgent", person=STRANGER)
        assert scenario.queue_text == "main"
        await scenario.comment(1, "/merge --priority 0")
        assert (await scenario.submission(1)).priority == 0
        await scenario.comment(1, "/merge --force", "/merge --force --priority urgent")
        assert not (await scenario.submission(1)).forced
        refused = [answer for answer in scenario.replies(1) if "Only maintainers" in answer]
        assert len(refused) == 2
        assert not any("urgent" in answer for answer in refused)


@pytest.mark.long
@asynchronous
async def test_comments_without_a_command_get_no_reply(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(
            1, "Shall we /merge this?", "> /merge", "LGTM\n/merge", "/merged already", person=STRANGER
        )
        assert scenario.queue_text == "main"
        assert scenario.replies(1) == []


@pytest.mark.long
@asynchronous
async def test_commands_are_executed_in_the_order_of_their_comments(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge --priority low", "/merge cancel", "/merge --priority high")
        assert (await scenario.submission(1)).priority == 10
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"
        assert scenario.reactions(1) == [(POSITIVE,)] * 3


async def edit_before_it_is_read(scenario: ForgeScenario, text: str) -> None:
    """A maintainer comments, and another user edits the comment before the queue can read it."""
    scenario.fail_all_requests()
    scenario.forge.comment(1, MAINTAINER, "I will look at this tomorrow.")
    await scenario.advance_one_second()
    scenario.forge.edit_comment(1, text.replace("/merge", scenario.forge.command_prefix))
    scenario.forge.faults.clear()
    await scenario.advance_one_minute()


@asynchronous
async def test_a_command_in_an_edited_comment_is_not_carried_out_and_gets_a_reply(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        await edit_before_it_is_read(scenario, f"/merge --force {scenario.forge.head(1)}")
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert "in a new comment" in answer
        assert scenario.reactions(1) == [(NEGATIVE,)]
        await scenario.comment(1, "/merge", person=MAINTAINER)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_an_edit_of_a_comment_that_was_read_gives_no_command(forge_scenario: StartScenario):
    """The Git host reports the edit with a webhook, and the next comment makes the queue read all of them again."""
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "I will look at this tomorrow.", person=MAINTAINER)
        await scenario.advance_one_second()
        reads = scenario.api_call_count()
        scenario.forge.edit_comment(1, scenario.forge.command_prefix)
        await scenario.wait_until_idle()
        assert scenario.api_call_count() == reads
        await scenario.comment(1, "Thanks!")
        assert scenario.api_call_count() > reads
        assert scenario.queue_text == "main"
        assert scenario.replies(1) == []


@pytest.mark.long
@asynchronous
async def test_own_comments_are_not_commands(forge_scenario: StartScenario):
    """The name of a check can be any text and appears in the service's comment."""
    async with forge_scenario() as scenario:
        await scenario.update(required_statuses=("/merge cancel",))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1, check="/merge cancel")
        await scenario.passes(check="/merge cancel")
        assert "/merge cancel" in scenario.status_comment(1)
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


# Replies that the Git host, or our own pace, delays

ONLY_REPLIES = Config(comments_enabled=False, status_check_enabled=False)
"""The service writes nothing but replies to commands."""
ONE_WRITE_A_MINUTE = WritePace(interval_ms=0, per_minute=1, per_hour=400)


class PacedScenario(ForgeScenario):
    """The service limits its own writes, as it does at GitHub's cloud."""

    def _new_host(self) -> Host:
        config = build_forge_config(KEY.repo.host, self.forge.settings, None)
        return GithubHost(replace(config, write_pace=ONE_WRITE_A_MINUTE), self.clock)


@pytest.mark.long
@asynchronous
async def test_replies_that_our_own_pace_delays_are_sent_later_and_delay_no_command(tmp_path: Path):
    scenario = PacedScenario(tmp_path, ScenarioSetup(poll_interval_ms=MINUTE), GithubDriver, RARE_POLL_INTERVAL_S)
    try:
        await scenario.set_up(ONLY_REPLIES)
        scenario.open(1)
        await scenario.comment(1, "/merge status")
        await scenario.comment(1, "/merge", "/merge cancel")
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        assert scenario.reactions(1) == [(NEGATIVE,), (), ()]
        for _ in range(6):
            await scenario.advance_one_minute()
        assert scenario.reactions(1) == [(NEGATIVE,), (POSITIVE,), (POSITIVE,)]
        assert ["never submitted" in answer for answer in scenario.replies(1)] == [True, False, False]
    finally:
        await scenario.close()


@asynchronous
async def test_reply_that_the_git_host_delays_is_sent_after_a_restart_and_its_command_is_not_executed_again(
    github_scenario: StartScenario,
):
    async with github_scenario(ONLY_REPLIES) as scenario:
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.github.limits.content_per_minute = 1
        scenario.open(1)
        await scenario.submit(1)
        await scenario.comment(1, "/merge restart")
        run = scenario.run_of(1).id
        assert scenario.reactions(1) == [(POSITIVE,)]
        assert scenario.replies(1) == []
        await scenario.restart()
        await scenario.advance_one_minute()
        await scenario.advance_one_minute()
        assert len(scenario.replies(1)) == 1
        assert scenario.run_of(1).id == run


@asynchronous
async def test_refused_reaction_is_dropped_and_the_text_of_the_reply_is_sent(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        scenario.forge.faults.plan(RespondsWith(403), scenario.forge.paths.reactions)
        await scenario.comment(1, "/merge status")
        await scenario.advance_one_minute()
        assert len(scenario.replies(1)) == 1
        assert scenario.reactions(1) == [()]


@asynchronous
async def test_refusal_of_a_label_is_sent_again_after_a_fault(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        await scenario.open_fork(1)
        scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.comments, method="POST")
        await scenario.label(1)
        assert scenario.replies(1) == []
        await scenario.advance_time(5 * SECOND)
        assert len(scenario.replies(1)) == 1


# A base branch without a queue


async def move_queue_to_dev(scenario: ForgeScenario) -> None:
    """Leaves the base branch of every pull request without a queue."""
    scenario.origin.branch("dev", base="main")
    await scenario.create_queue(scenario.queue_actor.queue.config, QueueKey(KEY.repo, "dev"))
    await scenario.service.queues.delete(KEY, "ada", b"", None)
    await scenario.wait_until_idle()


@asynchronous
async def test_command_on_a_base_branch_without_a_queue_gets_one_reply(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await move_queue_to_dev(scenario)
        scenario.open(1)
        await scenario.comment(1, "Nice work", "/merge", "/merge tomorrow")
        (answer,) = scenario.replies(1)
        assert "@ada No queue merges into `main`." in answer
        assert "that have a queue: `dev`." in answer
        assert scenario.reactions(1) == [(), (NEGATIVE,), ()]


@asynchronous
async def test_user_without_write_permission_gets_no_reply_on_a_base_branch_without_a_queue(
    forge_scenario: StartScenario,
):
    async with forge_scenario() as scenario:
        await move_queue_to_dev(scenario)
        scenario.open(1)
        await scenario.comment(1, "/merge", person=STRANGER)
        assert scenario.replies(1) == []
        assert scenario.reactions(1) == [()]
        await scenario.comment(1, "/merge")
        assert len(scenario.replies(1)) == 1


@asynchronous
async def test_queue_that_accepts_no_commands_gives_no_reply_for_other_branches(github_scenario: StartScenario):
    async with github_scenario(Config(commands_enabled=False)) as scenario:
        await move_queue_to_dev(scenario)
        scenario.open(1)
        await scenario.comment(1, "/merge")
        assert scenario.replies(1) == []


# Forks


@pytest.mark.long
@asynchronous
async def test_only_the_submitted_head_of_a_fork_is_tested(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        assert scenario.queue_text == "main ← 1…"
        scenario.push(1, {"evil": "yes"})
        await scenario.advance_one_second()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert scenario.queue_text == "main"


@pytest.mark.long
@asynchronous
async def test_push_to_a_fork_removes_the_pr_even_before_it_is_ready(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        scenario.forge.make_draft(1)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        assert await scenario.state(1) == "not_ready: draft"
        scenario.push(1, {"evil": "yes"})
        await scenario.advance_one_second()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@pytest.mark.long
@asynchronous
async def test_fork_is_merged_and_shown_as_merged(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.forge.is_merged(1)
        assert "Merged" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_label_submits_in_any_case_and_is_removed_after_the_merge(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        scenario.forge.label(1, LABEL.upper())
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        assert scenario.forge.labels(1) == []


@pytest.mark.long
@asynchronous
async def test_label_does_not_submit_a_fork_because_it_names_no_head(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        await scenario.label(1)
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert f"`{scenario.forge.command_prefix} {scenario.forge.head(1)}`" in answer
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_merge_command_without_a_head_on_a_fork_gets_a_reply_with_the_full_command(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        await scenario.comment(1, "/merge")
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert f"`{scenario.forge.command_prefix} {scenario.forge.head(1)}`" in answer
        assert scenario.reactions(1) == [(NEGATIVE,)]


@asynchronous
async def test_a_head_that_was_pushed_over_after_the_review_is_not_tested(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        reviewed = scenario.forge.head(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.wait_until_idle()
        await scenario.comment(1, f"/merge {reviewed}")
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert "not the head" in answer
        assert f"`{scenario.forge.command_prefix} {scenario.forge.head(1)}`" in answer


@asynchronous
async def test_an_abbreviated_head_is_not_accepted(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)[:12]}")
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert "full SHA" in answer


@pytest.mark.long
@asynchronous
async def test_a_head_named_on_a_pull_request_of_the_same_repository_is_pinned(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.forge.make_draft(1)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        scenario.push(1, {"more": "work"})
        await scenario.advance_one_second()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@pytest.mark.long
@asynchronous
async def test_api_submission_of_a_fork_must_name_its_head(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        reviewed = scenario.forge.head(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.wait_until_idle()
        unnamed = await scenario.post("submitPullRequest", pr={"number": 1})
        stale = await scenario.post("submitPullRequest", pr={"number": 1, "sha": reviewed})
        assert [answer.json()["code"] for answer in (unnamed, stale)] == ["sha_required", "sha_mismatch"]
        assert unnamed.status_code == 409
        assert scenario.forge.head(1) in unnamed.json()["detail"]
        assert scenario.queue_text == "main"
        named = await scenario.post("submitPullRequest", pr={"number": 1, "sha": scenario.forge.head(1)})
        assert named.status_code == 200, named.text
        again = await scenario.post("submitPullRequest", pr={"number": 1}, priority="high")
        assert again.json()["code"] == "sha_required"


# Force


@asynchronous
async def test_force_without_a_head_is_refused_with_the_full_command(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge --force", person=MAINTAINER)
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        line = f"{scenario.forge.command_prefix} --force {scenario.forge.head(1)}"
        assert f"`{line}`" in answer
        await scenario.comment(1, line, person=MAINTAINER)
        assert (await scenario.submission(1)).forced


@asynchronous
async def test_force_is_refused_if_the_head_was_pushed_over_after_the_review(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        seen = scenario.forge.head(1)
        scenario.fail_all_requests()
        scenario.forge.comment(1, MAINTAINER, f"{scenario.forge.command_prefix} --force {seen}")
        scenario.push(1, {"evil": "yes"})
        scenario.forge.faults.clear()
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main"
        (answer,) = scenario.replies(1)
        assert "not the head" in answer
        assert f"`{scenario.forge.command_prefix} --force {scenario.forge.head(1)}`" in answer


@asynchronous
async def test_a_push_removes_a_forced_pull_request_also_while_it_is_not_ready(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.forge.make_draft(1)
        await scenario.comment(1, f"/merge --force {scenario.forge.head(1)}", person=MAINTAINER)
        assert (await scenario.state(1)).startswith("not_ready")
        scenario.push(1, {"more": "work"})
        await scenario.advance_one_second()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_force_over_the_api_without_a_head_is_for_the_head_that_the_server_reads(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        seen = scenario.forge.head(1)
        scenario.push(1, {"more": "work"})
        await scenario.wait_until_idle()
        stale = await scenario.post("submitPullRequest", pr={"number": 1, "sha": seen}, force=True)
        assert stale.json()["code"] == "sha_mismatch"
        answer = await scenario.post("submitPullRequest", pr={"number": 1}, force=True)
        assert (answer.json()["forceEnqueued"], answer.json()["prSha"]) == (True, scenario.forge.head(1))


# Guarded paths

WORKFLOW = ".github/workflows/ci.yml"
GUARDS_THE_MAKEFILE = 'version = 1\nrequired_statuses = ["unit"]\nguarded_paths = ["Makefile"]'


@pytest.mark.long
@asynchronous
async def test_a_fork_that_changes_ci_files_waits_until_a_maintainer_submits_it(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        head = scenario.forge.head(1)
        await scenario.comment(1, f"/merge {head}")
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        why = (await scenario.view(1)).reason.message
        assert WORKFLOW in why
        assert head in why
        assert f"can post `{scenario.forge.command_prefix} {head}`" in scenario.status_comment(1)
        assert "workflows/ci.yml" in scenario.status_comment(1)
        await scenario.comment(1, f"/merge {head} --priority high")
        assert scenario.queue_text == "main"
        await scenario.comment(1, f"/merge {head}", person=MAINTAINER)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_pull_request_of_the_same_repository_may_change_ci_files(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, files={WORKFLOW: "on: push"})
        await scenario.comment(1, "/merge")
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_force_does_not_skip_the_wait_for_a_maintainer(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        await scenario.open_fork(1, {".mergeyard.toml": "version = 1"})
        await scenario.submit(1, head=scenario.forge.head(1), forced=True)
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert scenario.queue_text == "main"


@pytest.mark.long
@asynchronous
async def test_for_api_and_dashboard_the_admin_scope_makes_a_maintainer(github_scenario: StartScenario):
    async with github_scenario() as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as writer:
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        head = scenario.forge.head(1)
        _, token = await scenario.service.tokens.create("writer", {Scope.SUBMIT, Scope.PRIORITY})
        by_api = await scenario.post("submitPullRequest", token=token, pr={"number": 1, "sha": head}, force=True)
        assert by_api.json()["reason"]["code"] == "waiting_for_maintainer"
        await writer.post("/actions/submit", queue=QUEUE_NAME, number=1, head=head)
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        page = await writer.get("/pulls/git.local/acme/app/1")
        assert "Changes guarded paths" in page.text
        answer = await scenario.post("submitPullRequest", pr={"number": 1, "sha": head})
        await scenario.wait_until_idle()
        assert answer.status_code == 200, answer.text
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_guarded_paths_are_read_from_the_target_branch(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.forge.push_to_main({".mergeyard.toml": GUARDS_THE_MAKEFILE})
        await scenario.advance_one_second()
        await scenario.open_fork(1, {WORKFLOW: "on: push"})
        await scenario.open_fork(2, {"Makefile": "test:"})
        await scenario.open_fork(3, {".mergeyard.toml": "version = 1\nguarded_paths = []"})
        for number in (1, 2, 3):
            await scenario.comment(number, f"/merge {scenario.forge.head(number)}")
        assert scenario.queue_text == "main ← 1…"
        for number in (2, 3):
            assert await scenario.state(number) == "not_ready: waiting_for_maintainer"


@pytest.mark.long
@asynchronous
async def test_fork_with_the_head_of_a_local_pr_is_still_checked_as_a_fork(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1, files={WORKFLOW: "on: push"})
        await scenario.comment(1, "/merge")
        await scenario.open_fork(2, {"other": "1"})
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.point_fork_at(2, scenario.forge.head(1))
        await scenario.wait_until_idle()
        await scenario.comment(2, f"/merge {scenario.forge.head(2)}")
        assert await scenario.state(2) == "not_ready: waiting_for_maintainer"


@pytest.mark.long
@pytest.mark.parametrize(
    "polled",
    [pytest.param(True, id="while it is tested", marks=pytest.mark.long), pytest.param(False, id="before it lands")],
)
@asynchronous
async def test_fork_waits_again_when_the_target_branch_guards_its_paths(github_scenario: StartScenario, polled: bool):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S if polled else RARE_POLL_INTERVAL_S) as scenario:
        await scenario.open_fork(1, {"Makefile": "test:"})
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        scenario.forge.push_to_main({".mergeyard.toml": GUARDS_THE_MAKEFILE})
        await scenario.advance_one_minute()
        if not polled:
            await scenario.passes(1)
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert not scenario.forge.is_merged(1)
        assert "Makefile" in scenario.status_comment(1)


@asynchronous
async def test_change_moved_into_a_guarded_folder_by_a_rename_on_the_target_branch_is_noticed(
    github_scenario: StartScenario,
):
    """The merge follows the rename, so that the fork changes a workflow without naming one."""
    content = "".join(f"line {number}\n" for number in range(20))
    async with github_scenario() as scenario:
        scenario.forge.push_to_main({"ci.yml": content})
        await scenario.advance_one_second()
        await scenario.open_fork(1, {"ci.yml": content + "evil\n"})
        scenario.forge.push_to_main({"ci.yml": None, WORKFLOW: content})
        await scenario.advance_one_second()
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        assert await scenario.state(1) == "not_ready: waiting_for_maintainer"
        assert WORKFLOW in (await scenario.view(1)).reason.message


# Forms of the dashboard


@asynchronous
async def test_a_form_with_force_shows_the_head_and_asks_to_confirm_it(github_scenario: StartScenario):
    async with github_scenario() as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        asked = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1, force="on")
        seen = scenario.forge.head(1)
        assert asked.status == 409
        assert "Force #1?" in asked.text
        assert seen in asked.one("#act").text
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main"
        scenario.push(1, {"evil": "yes"})
        fields = {field["name"]: field["value"] for field in asked.all("input[name]")}
        assert fields["head"] == seen
        stale = await visitor.post("/actions/submit", **fields)
        assert stale.status == 409
        assert "#1 has new commits" in stale.text
        assert scenario.queue_text == "main"
        fields = {field["name"]: field["value"] for field in stale.all("input[name]")}
        assert (await visitor.post("/actions/submit", **fields)).status == 303
        submission = await scenario.submission(1)
        assert (submission.forced, submission.pull_request.head) == (True, scenario.forge.head(1))


@pytest.mark.long
@asynchronous
async def test_a_form_without_a_head_shows_the_head_of_a_fork_and_asks_to_confirm_it(github_scenario: StartScenario):
    async with github_scenario() as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        await scenario.open_fork(1)
        asked = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1, no_batch="on")
        head = scenario.forge.head(1)
        assert asked.status == 409
        assert head in asked.one("#act").text
        assert any("/pull/1" in link for link in asked.links())
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main"
        in_place = await visitor.post_htmx("/actions/submit", queue=QUEUE_NAME, number=1)
        assert in_place.one("[name=head]")["value"] == head
        fields = {field["name"]: field["value"] for field in asked.all("input[name]")}
        confirmed = await visitor.post("/actions/submit", **fields)
        await scenario.wait_until_idle()
        assert confirmed.status == 303
        assert scenario.queue_text == "main ← 1…"
        assert (await scenario.submission(1)).no_batch


@pytest.mark.long
@asynchronous
async def test_the_dialog_that_resubmits_a_fork_asks_to_confirm_the_head_again(github_scenario: StartScenario):
    async with github_scenario() as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        await scenario.open_fork(1)
        await scenario.submit(1, head=scenario.forge.head(1))
        await scenario.cancel(1)
        dialog = await visitor.get(f"/actions/submit?queue={QUEUE_NAME}&number=1")
        assert dialog.all("[name=head]") == []
        asked = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1)
        assert (asked.status, asked.one("[name=head]")["value"]) == (409, scenario.forge.head(1))
        assert "comes from a fork" in asked.text


@pytest.mark.long
@asynchronous
async def test_a_form_that_shows_a_stale_head_is_refused(github_scenario: StartScenario):
    async with github_scenario() as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.cancel(1)
        dialog = await visitor.get(f"/actions/submit?queue={QUEUE_NAME}&number=1")
        shown = dialog.one("[name=head]")["value"]
        assert shown == scenario.forge.head(1)
        assert shown[:8] in dialog.one("#act").text
        scenario.push(1, {"evil": "yes"})
        refused = await visitor.post("/actions/submit", queue=QUEUE_NAME, number=1, head=shown)
        assert refused.status == 409
        assert "has new commits" in refused.text
        assert scenario.forge.head(1) in refused.text
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main"


@asynchronous
async def test_the_author_of_a_fork_takes_it_out_without_write_access(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.open_fork(1)
        scenario.open(2)
        await scenario.comment(1, f"/merge {scenario.forge.head(1)}")
        await scenario.comment(2, "/merge")
        assert scenario.queue_text == "main ← 1… ← 2…"
        await scenario.comment(2, "/merge cancel", person=STRANGER)
        assert scenario.queue_text == "main ← 1… ← 2…"
        await scenario.comment(1, "/merge cancel", person=STRANGER)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
