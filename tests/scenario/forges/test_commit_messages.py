"""The words of squashed commits at every forge: the same whether the queue pushes them or the forge merges."""

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.service.previews import UNKNOWN_RUN, MergePreview, MergesBy
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import ForgeScenario
from tests.support.forges.faults import RespondsWith
from tests.support.scenario import KEY, MINUTE

BODY = """Users expect it.\r
\r
<!-- Describe the change above. -->\r
---\r
[skip ci] Mergeyard-Run: no\r
Mergeyard-Run: forged\r
\r
Closes #4\r
"""
CLEAN = "Users expect it.\n\n----\n(skip ci) Mergeyard-Run: no\n\nCloses #4"


async def preview(scenario: ForgeScenario, number: int) -> MergePreview:
    return await scenario.service.previews.preview_merge(KEY, PullRequestNumber(number))


def last_message(scenario: ForgeScenario) -> str:
    return scenario.origin.run("log", "-1", "--format=%B", "main").decode()


@pytest.mark.long
@pytest.mark.parametrize("landing", LandingMethod)
@asynchronous
async def test_the_merged_commit_has_the_words_of_the_preview(forge_scenario: StartScenario, landing: LandingMethod):
    async with forge_scenario(Config(merge_method=MergeMethod.SQUASH, landing=landing)) as scenario:
        scenario.open(1)
        scenario.forge.describe(1, BODY)
        head = scenario.forge.head(1)
        before = await preview(scenario, 1)
        await scenario.submit(1)
        run = scenario.run_of(1).id
        (expected,) = (await preview(scenario, 1)).messages
        assert before.messages == (expected.replace(run, UNKNOWN_RUN),)
        subject, body = expected.split("\n\n", 1)
        assert subject in ("Change 1 (#1)", "Change 1 (merge request 1)")
        assert body.startswith(f"{CLEAN}\n\n")
        assert body.endswith(f"Mergeyard-Pull-Request: 1\nMergeyard-Run: {run}\nMergeyard-Head: {head}\n")
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)
        assert last_message(scenario).rstrip() == expected.rstrip()


@asynchronous
async def test_a_pull_request_from_a_fork_says_before_it_is_submitted_how_it_merges(github_scenario: StartScenario):
    async with github_scenario(Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        await scenario.open_fork(2)
        assert (await preview(scenario, 1)).merges_by is MergesBy.TESTED_COMMIT
        fork = await preview(scenario, 2)
        assert fork.merges_by is MergesBy.PROVIDER_MERGE
        assert fork.explanation.startswith(
            "The head branch is in a fork that the queue cannot push to, so the Git host"
        )


@pytest.mark.long
@asynchronous
async def test_a_run_waits_until_the_git_host_answers_with_the_words(github_scenario: StartScenario):
    async with github_scenario(Config(merge_method=MergeMethod.SQUASH)) as scenario:
        scenario.open(1)
        scenario.forge.describe(1, "Polite.")
        scenario.forge.faults.plan(RespondsWith(502), r"/users/")
        await scenario.submit(1)
        await scenario.advance_time(MINUTE)
        await scenario.passes(1)
        assert last_message(scenario).startswith("Change 1 (#1)\n\nPolite.\n")


@asynchronous
async def test_a_git_host_that_rebases_keeps_the_messages(github_scenario: StartScenario):
    by_host = Config(merge_method=MergeMethod.REBASE, landing=LandingMethod.PROVIDER_MERGE)
    async with github_scenario(by_host) as scenario:
        scenario.open(1)
        scenario.origin.commit("feature1", {"large": "1"}, message=f"Large\n\n{'x' * 100_000}")
        scenario.forge.push(1, {"more": "1"})
        first, large, last = (await preview(scenario, 1)).messages
        assert "Mergeyard-" not in first + large + last
        assert len(large) == 64 * 1024
