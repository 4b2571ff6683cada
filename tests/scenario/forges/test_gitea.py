"""Gitea only: unknown mergeability, protection rules, dependencies, and merges by push that Gitea does not notice."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from mergeyard.domain.config import Config, LandingMethod
from mergeyard.service.comments.texts import escape_markdown
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import BOT
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.forges.faults import ALWAYS, LosesResponse, RespondsWith
from tests.support.forges.gitea.world import Blocker
from tests.support.long_tests import mark_long_after

BY_GITEA = Config(landing=LandingMethod.PROVIDER_MERGE)


def add_dependency(scenario: ForgeScenario, number: int, on: int) -> None:
    assert isinstance(scenario.forge, GiteaDriver)
    acme = scenario.forge.acme
    acme.pull_requests[number].blockers.append(Blocker(acme, acme.pull_requests[on]))


@pytest.mark.long
@asynchronous
async def test_pr_whose_mergeability_gitea_never_checks_is_tested_and_lands(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        scenario.forge.hide_mergeability(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: mergeability_unknown"
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_pr_that_gitea_checks_again_during_its_tests_lands(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.hide_mergeability(1)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_conflict_that_gitea_has_not_checked_is_found_by_git(gitea_scenario: StartScenario):
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, files={"a.txt": "ours"})
        scenario.forge.push_to_main({"a.txt": "theirs"})
        await scenario.submit(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: not_mergeable"


@pytest.mark.long
@asynchronous
async def test_pr_that_gitea_refuses_to_merge_while_checking_is_merged_later(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        scenario.forge.hide_mergeability(1)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        await scenario.submit(2)
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: not_mergeable"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        scenario.forge.show_mergeability(1)
        await scenario.advance_one_minute()
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_pr_with_an_open_dependency_waits_and_blocks_no_other(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2, 3)
        add_dependency(scenario, 1, on=3)
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "not_ready: blocked_by_host_rule"
        assert escape_markdown("open dependency #3") in scenario.status_comment(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_forced_pr_with_an_open_dependency_fails_with_an_explanation(gitea_scenario: StartScenario):
    async with gitea_scenario(BY_GITEA, poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        add_dependency(scenario, 1, on=2)
        await scenario.submit_by_api(1, force=True)
        await scenario.passes(1)
        assert await scenario.state(1) == "failed: merge_refused"
        assert escape_markdown("The pull request depends on #2") in scenario.status_comment(1)


@pytest.mark.long
@pytest.mark.parametrize("landing", mark_long_after(1, list(LandingMethod)))
@asynchronous
async def test_pr_that_depends_on_the_pr_ahead_is_merged_after_it(
    gitea_scenario: StartScenario, landing: LandingMethod
):
    async with gitea_scenario(Config(landing=landing), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        add_dependency(scenario, 2, on=1)
        await scenario.submit(1, 2)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        await scenario.advance_one_minute()
        await scenario.passes(2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2


class Fact(Struct, frozen=True):
    """A requirement, and how people meet it and withdraw that again."""

    rule: dict[str, Any]
    block: Callable[[GiteaDriver], None]
    meet: Callable[[GiteaDriver], None]
    reason: str
    message: str


def set_rule(**options: Any) -> Callable[[GiteaDriver], None]:
    def change(forge: GiteaDriver) -> None:
        for name, value in options.items():
            setattr(forge.rule, name, value)

    return change


def set_role(role: str) -> Callable[[GiteaDriver], None]:
    return lambda forge: forge.acme.roles.update({BOT: role})


def set_dependency_state(state: str) -> Callable[[GiteaDriver], None]:
    def change(forge: GiteaDriver) -> None:
        pull, dependency = forge.acme.pull_requests[1], forge.acme.pull_requests[2]
        pull.blockers[:] = [Blocker(forge.acme, dependency)]
        dependency.state = state

    return change


FACTS = {
    "approval": Fact(
        {"required_approvals": 1},
        lambda forge: forge.dismiss_reviews(1),
        lambda forge: forge.approve(1, "grace"),
        "waiting_for_review",
        "Waiting for a review (0 of 1 approvals).",
    ),
    "another review": Fact(
        {"required_approvals": 1},
        lambda forge: forge.request_review(1, "grace"),
        lambda forge: forge.approve(1, "grace"),
        "waiting_for_review",
        "Waiting for a review from @grace (0 of 1 approvals).",
    ),
    "requested changes": Fact(
        {"block_on_rejected_reviews": True},
        lambda forge: forge.request_changes(1, "grace"),
        lambda forge: forge.approve(1, "grace"),
        "changes_requested",
        "Changes were requested by @grace.",
    ),
    "review request": Fact(
        {"block_on_official_review_requests": True},
        lambda forge: forge.request_review(1, "grace"),
        lambda forge: forge.approve(1, "grace"),
        "waiting_for_review",
        "Waiting for a review from @grace",
    ),
    "protected file": Fact(
        {},
        set_rule(protected_file_patterns="file1"),
        set_rule(protected_file_patterns=""),
        "blocked_by_host_rule",
        "protected file file1",
    ),
    "dependency": Fact(
        {}, set_dependency_state("open"), set_dependency_state("closed"), "blocked_by_host_rule", "open dependency #2"
    ),
    "hidden rule": Fact({}, set_role("write"), set_role("admin"), "host_rule_unreadable", "the permission admin"),
}


@pytest.mark.parametrize("landing", mark_long_after(1, list(LandingMethod)))
@pytest.mark.parametrize("name", mark_long_after(2, list(FACTS)))
@asynchronous
async def test_pr_waits_for_what_a_rule_requires_and_does_not_merge_after_it_was_withdrawn(
    gitea_scenario: StartScenario, name: str, landing: LandingMethod
):
    fact = FACTS[name]
    async with gitea_scenario(Config(landing=landing), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        assert isinstance(scenario.forge, GiteaDriver)
        set_rule(**fact.rule)(scenario.forge)
        fact.block(scenario.forge)
        await scenario.submit(1)
        assert await scenario.state(1) == f"not_ready: {fact.reason}"
        assert fact.message in (await scenario.view(1)).reason.message
        fact.meet(scenario.forge)
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        fact.block(scenario.forge)
        await scenario.passes(1)
        assert await scenario.state(1) == f"not_ready: {fact.reason}"
        assert not scenario.forge.is_merged(1)
        assert scenario.landed_subjects() == []


@pytest.mark.long
@asynchronous
async def test_approval_that_is_dismissed_ends_the_run_at_the_next_poll(gitea_scenario: StartScenario):
    """Gitea sends no webhook when a review is dismissed."""
    async with gitea_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        assert isinstance(scenario.forge, GiteaDriver)
        scenario.forge.rule.required_approvals = 1
        await scenario.submit(1)
        scenario.forge.approve(1, "grace")
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"
        scenario.forge.dismiss_reviews(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "not_ready: waiting_for_review"
        assert scenario.queue_text == "main"


MARK = "/pulls/1/merge$"


@pytest.mark.long
@asynchronous
async def test_failed_marking_is_retried_later(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        for fault in (RespondsWith(503), RespondsWith(502), LosesResponse()):
            scenario.forge.faults.plan(fault, MARK)
        await land_unmarked(scenario, 1)
        await scenario.advance_one_minute()
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_failed_marking_is_retried_after_a_restart(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(503), MARK, times=ALWAYS)
        await land_unmarked(scenario, 1)
        await scenario.service.stop()
        scenario.forge.faults.clear()
        await scenario.start()
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_pr_that_cannot_be_marked_does_not_block_others(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        scenario.forge.faults.plan(RespondsWith(503), scenario.forge.paths.merge, times=ALWAYS)
        await land_unmarked(scenario, 1)
        await land_unmarked(scenario, 2)
        scenario.forge.faults.clear()
        scenario.forge.faults.plan(RespondsWith(503), MARK, times=ALWAYS)
        await scenario.advance_one_minute()
        assert scenario.forge.is_merged(2)
        assert not scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_marking_refused_by_gitea_is_not_retried(gitea_scenario: StartScenario):
    async with gitea_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(405), MARK, times=ALWAYS)
        await land_unmarked(scenario, 1)
        asked = count_mark_requests(scenario)
        await scenario.advance_one_minute()
        assert count_mark_requests(scenario) == asked


async def land_unmarked(scenario: ForgeScenario, number: int) -> None:
    await scenario.passes(number)
    assert await scenario.state(number) == "merged: merged_by_queue"
    assert not scenario.forge.is_merged(number)


def count_mark_requests(scenario: ForgeScenario) -> int:
    """How often Gitea was asked to mark the first pull request as merged."""
    return sum(call.endswith("/pulls/1/merge") for call in scenario.forge.faults.calls)
