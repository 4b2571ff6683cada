"""How the forge shows a pull request's state: one comment, edited in place, and a status on its head."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.ports.external import Clock
from mergeyard.service.comments.commands import ThreadStates
from mergeyard.service.comments.listener import CommentPublisher, CommentRefresher
from mergeyard.service.repositories import Repositories
from mergeyard.settings.schema import UnreadableRules
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import MAINTAINER, POSITIVE
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import PUBLIC_URL, a_forge_scenario
from tests.support.forges.faults import ALWAYS, LosesResponse, RespondsWith
from tests.support.forges.github.rulesets import pull_request_rule
from tests.support.forges.github.world import BranchProtection
from tests.support.scenario import KEY

PULL_REQUEST_PAGE = "http://yard.example/pulls/git.local/acme/app/1"


@pytest.mark.long
@asynchronous
async def test_one_comment_is_updated_through_the_whole_submission(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.forge.make_draft(1)
        await scenario.submit(1)
        assert "⏳ Not ready" in scenario.status_comment(1)
        scenario.forge.make_ready(1)
        await scenario.advance_one_second()
        assert "🧪 Testing for `main` · position 1" in scenario.status_comment(1)
        await scenario.passes(1)
        assert "🎉 Merged" in scenario.status_comment(1)
        assert "`merged_by_queue`" in scenario.status_comment(1)


@asynchronous
async def test_comment_shows_another_reason_for_which_the_pr_is_not_ready(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.forge.make_draft(1)
        await scenario.submit(1)
        assert "`draft`" in scenario.status_comment(1)
        scenario.forge.hide_mergeability(1)
        scenario.forge.make_ready(1)
        await scenario.advance_one_second()
        assert "⏳ Not ready" in scenario.status_comment(1)
        assert "`mergeability_unknown`" in scenario.status_comment(1)


@asynchronous
async def test_comment_counts_the_approvals_and_mentions_no_reviewer(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.acme.add_ruleset("reviews", [pull_request_rule(2)])
        scenario.forge.acme.roles["bob"] = "write"
        scenario.open(1)
        await scenario.submit(1)
        assert "(0 of 2 approvals)." in scenario.status_comment(1).replace("\\", "")
        scenario.forge.approve(1, MAINTAINER)
        await scenario.advance_one_second()
        assert "(1 of 2 approvals)." in scenario.status_comment(1).replace("\\", "")
        scenario.forge.request_changes(1, "bob")
        await scenario.advance_one_second()
        assert "Changes were requested by @\u200bbob." in scenario.status_comment(1)
        assert scenario.commit_status(1).description.startswith("Not ready. Changes were requested by @bob.")
        scenario.forge.approve(1, "bob")
        await scenario.advance_one_second()
        assert "🧪 Testing" in scenario.status_comment(1)


@pytest.mark.long
@pytest.mark.parametrize(("setting", "state"), [("unmet", "not_ready"), ("unknown", "testing")])
@asynchronous
async def test_setting_decides_whether_a_rule_that_cannot_be_read_blocks(
    tmp_path: Path, setting: UnreadableRules, state: str
):
    def make_forge(root: Path, clock: Clock) -> GithubDriver:
        driver = GithubDriver(root, clock)
        driver.settings = replace(driver.settings, unreadable_rules=setting)
        return driver

    async with a_forge_scenario(tmp_path, make_forge) as scenario:
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.acme.protections["main"] = BranchProtection()
        scenario.forge.faults.plan(RespondsWith(403), "/branches/main/protection$", times=ALWAYS)
        scenario.open(1)
        await scenario.submit(1)
        assert (await scenario.submission(1)).state == state
        (requirement,) = (await scenario.view(1)).requirements
        assert (requirement.code, requirement.given, requirement.met) == (
            "host_rule_unreadable",
            None,
            setting == "unknown",
        )
        assert ("An administrator has to grant" in scenario.status_comment(1)) == (setting == "unmet")


@pytest.mark.long
@asynchronous
async def test_queue_of_a_host_that_is_no_longer_configured_has_no_comments_to_refresh(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        scenario.forge.make_draft(1)
        await scenario.submit(1)
        service, repositories = scenario.service, Repositories({}, scenario.service.git)
        publisher = CommentPublisher(
            service.registry, repositories, ThreadStates(service.registry, service.leases), PUBLIC_URL
        )
        refresher = CommentRefresher(publisher, repositories, service.leases, service.clock, service.background)
        refresher.on_change(scenario.queue_actor, None)


@pytest.mark.long
@asynchronous
async def test_comment_has_an_estimate_that_alone_causes_no_write(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        await scenario.passes(1)
        await scenario.submit(2)
        assert "- Expected to merge at about " in scenario.status_comment(2)
        text = scenario.status_comment(2)
        await scenario.advance_one_minute()
        service, queue = scenario.service, scenario.queue_actor
        states = ThreadStates(service.registry, service.leases)
        publisher = CommentPublisher(service.registry, service.repositories, states, PUBLIC_URL)
        await publisher.consume(queue.key, queue.id, await service.registry.store.entries(queue.id, 0, 100))
        assert scenario.status_comment(2) == text


@asynchronous
async def test_comment_names_the_commands_with_the_prefix_of_the_forge(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert f"Commands: `{scenario.forge.command_prefix} cancel` removes" in scenario.status_comment(1)
        await scenario.update(commands_enabled=False)
        await scenario.cancel(1)
        assert f"{scenario.forge.command_prefix}" not in scenario.status_comment(1)


@asynchronous
async def test_the_failed_check_is_named_with_its_link(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        assert "❌ Failed" in scenario.status_comment(1)
        assert "- Failed: [unit](https://ci.example/unit)" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_second_submission_updates_the_same_comment(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        await scenario.submit(1)
        assert "🧪 Testing" in scenario.status_comment(1)
        assert "https://ci.example/unit" not in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_comment_names_the_prs_that_are_tested_together(forge_scenario: StartScenario):
    async with forge_scenario(Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        prefix = scenario.service.repositories.get_host(KEY.repo.host).number_prefix
        assert f"- Tested together with {prefix}2" in scenario.status_comment(1)
        assert f"- Tested together with {prefix}1" in scenario.status_comment(2)


@pytest.mark.long
@asynchronous
async def test_status_on_the_head_summarizes_the_state(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        is_gitlab = scenario.forge.settings.provider == "gitlab"  # it accepts new words only with a new state
        assert scenario.commit_status(1).state == ("running" if is_gitlab else "pending")
        assert scenario.commit_status(1).url == PULL_REQUEST_PAGE
        assert f"[Details and current position]({PULL_REQUEST_PAGE})" in scenario.status_comment(1)
        await scenario.passes(1)
        assert scenario.commit_status(1).state == "success"
        assert scenario.commit_status(1).description.startswith("Merged. ")
        await scenario.fails(2)
        assert scenario.commit_status(2).state in ("failure", "failed")
        assert scenario.commit_status(2).description.startswith("Failed. ")


@pytest.mark.long
@asynchronous
async def test_deleted_comment_is_created_again(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.delete_our_comments(1)
        await scenario.passes(1)
        await scenario.advance_one_second()
        assert "🎉 Merged" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_disabled_comments_and_statuses_are_not_written(forge_scenario: StartScenario):
    async with forge_scenario(Config(comments_enabled=False, status_check_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.forge.comments(1) == []
        assert scenario.forge.bot_status(scenario.forge.head(1)) is None
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_command_gets_a_text_reply_if_comments_are_disabled(forge_scenario: StartScenario):
    async with forge_scenario(Config(comments_enabled=False)) as scenario:
        scenario.open(1)
        await scenario.comment(1, "/merge")
        assert len(scenario.replies(1)) == 1


@asynchronous
async def test_comment_whose_response_was_lost_is_not_created_twice(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.comments, method="POST")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        assert "Testing" in scenario.status_comment(1)


@pytest.mark.long
@asynchronous
async def test_reply_whose_response_was_lost_is_not_created_twice(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(LosesResponse(), scenario.forge.paths.comments, method="POST")
        await scenario.comment(1, "/merge status")
        await scenario.advance_one_minute()
        assert len(scenario.replies(1)) == 1
        assert scenario.reactions(1) == [(POSITIVE,)]


@pytest.mark.long
@asynchronous
async def test_failed_comment_is_retried_while_the_pr_is_tested(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.comments, times=3)
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"
        await scenario.advance_one_minute()
        assert "Testing" in scenario.status_comment(1)
