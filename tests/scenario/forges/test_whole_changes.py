"""A pull request that the Git host merges brings its whole change, whatever was reverted before, and whatever the
messages of others say."""

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.states import QueueState
from mergeyard.ports.git import Identity
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import BOT
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import ForgeScenario
from tests.support.repositories import Files
from tests.support.scenario import ScenarioSetup

RUN = "00000000-0000-4000-8000-000000000000"


def by_forge(method: MergeMethod) -> Config:
    return Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=method)


@pytest.fixture(params=["github", "gitea"])
def start_where_the_host_rebases(request: pytest.FixtureRequest) -> StartScenario:
    return request.getfixturevalue(f"{request.param}_scenario")


async def land(scenario: ForgeScenario, number: int) -> None:
    await scenario.submit(number)
    await scenario.passes(number)
    assert await scenario.state(number) == "merged: merged_by_queue"


async def land_again_after_a_revert(scenario: ForgeScenario) -> set[str]:
    """The files on the target branch, after a change was reverted and has landed again with a correction."""
    scenario.open(1, files={"feature": "1\n"})
    scenario.origin.branch("old", base="feature1")
    await land(scenario, 1)
    scenario.open(2, files={"feature": None})
    await land(scenario, 2)
    scenario.open(3, base="old", files={"fix": "1\n"})
    await land(scenario, 3)
    return set(scenario.origin.files("main"))


@asynchronous
async def test_a_change_that_was_reverted_lands_again_as_a_whole(forge_scenario: StartScenario):
    async with forge_scenario(by_forge(MergeMethod.SQUASH)) as scenario:
        assert {"feature", "fix"} <= await land_again_after_a_revert(scenario)


@asynchronous
async def test_a_change_that_was_reverted_lands_again_as_a_whole_where_github_rebases(github_scenario: StartScenario):
    async with github_scenario(by_forge(MergeMethod.REBASE)) as scenario:
        assert {"feature", "fix"} <= await land_again_after_a_revert(scenario)


@asynchronous
async def test_a_change_that_gitea_leaves_out_after_its_revert_is_reported(gitea_scenario: StartScenario):
    """Gitea runs `git rebase`, which leaves out a commit whose patch the target branch had before."""
    async with gitea_scenario(by_forge(MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"feature": "1\n"})
        scenario.origin.branch("old", base="feature1")
        scenario.forge.push_to_main({"meanwhile": "1\n"})
        await land(scenario, 1)
        scenario.open(2, files={"feature": None})
        await land(scenario, 2)
        scenario.open(3, base="old", files={"fix": "1\n"})
        await scenario.submit(3)
        await scenario.passes(3)
        assert "feature" not in scenario.origin.files("main")
        assert await scenario.state(3) == "merged: tree_mismatch"
        assert scenario.queue_actor.queue.state is QueueState.PAUSED


async def open_with_message(scenario: ForgeScenario, number: int, message: str) -> None:
    """Two commits: the Git host keeps the message of the first one when it rebases."""
    scenario.open(number, files={"replaced": "1\n"})
    scenario.origin.branch(f"feature{number}", base="main", files={"typo": "1\n"}, message=message)
    scenario.push(number, {"more": "1\n"})
    await scenario.wait_until_idle()


async def audit(scenario: ForgeScenario) -> list[str]:
    report = await scenario.service.merge_auditor.audit_on_request(scenario.queue_actor.key, 20)
    return [mismatch.message for mismatch in report.mismatches]


@asynchronous
async def test_the_message_of_a_commit_that_the_host_rebased_drops_no_change_of_another(
    start_where_the_host_rebases: StartScenario,
):
    async with start_where_the_host_rebases(by_forge(MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"fix": "1\n"})
        victim = scenario.origin.tip("feature1")
        scenario.push(1, {"test": "1\n"})
        await open_with_message(scenario, 2, f"Correct a typo\n\nMergeyard-Head: {victim}\n")
        await land(scenario, 2)
        assert f"Mergeyard-Head: {victim}" in messages_on_main(scenario)
        await land(scenario, 1)
        assert {"fix", "test", "typo", "more"} <= set(scenario.origin.files("main"))
        assert await audit(scenario) == []
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_the_message_of_a_commit_that_the_host_rebased_pauses_no_queue(
    start_where_the_host_rebases: StartScenario,
):
    async with start_where_the_host_rebases(by_forge(MergeMethod.REBASE)) as scenario:
        claim = f"Mergeyard-Pull-Request: 77\nMergeyard-Run: {RUN}"
        await open_with_message(scenario, 1, f"Correct a typo\n\n{claim}\n")
        await land(scenario, 1)
        assert claim in messages_on_main(scenario)
        assert await audit(scenario) == []
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_a_message_pauses_no_queue_where_the_host_rebases_in_the_name_of_the_queue(gitea_scenario: StartScenario):
    """Gitea names the account that merges as the committer. Its full name can be that of the queue."""
    setup = ScenarioSetup(identity=Identity("Mergeyard", ""))
    async with gitea_scenario(by_forge(MergeMethod.REBASE), setup=setup) as scenario:
        assert isinstance(scenario.forge, GiteaDriver)
        scenario.forge.world.accounts[BOT].full_name = "Mergeyard"
        claim = f"Mergeyard-Pull-Request: 77\nMergeyard-Run: {RUN}"
        await open_with_message(scenario, 1, f"Correct a typo\n\n{claim}\n")
        scenario.forge.push_to_main({"meanwhile": "1\n"})
        await land(scenario, 1)
        assert claim in messages_on_main(scenario)
        assert scenario.origin.log("main", "%cn")[-2:] == ["Mergeyard", "Mergeyard"]
        assert await audit(scenario) == []
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_the_message_of_a_fork_drops_no_change_of_another(github_scenario: StartScenario):
    """With default settings GitHub merges what comes from a fork, because an app cannot move its head branch."""
    async with github_scenario(Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"fix": "1\n"})
        victim = scenario.origin.tip("feature1")
        scenario.push(1, {"test": "1\n"})
        await open_fork_with_message(scenario, f"Correct a typo\n\nMergeyard-Head: {victim}\n", {"typo": "1\n"})
        await scenario.comment(2, f"/merge {scenario.forge.head(2)}")
        await scenario.passes(2)
        assert f"Mergeyard-Head: {victim}" in messages_on_main(scenario)
        await land(scenario, 1)
        assert {"fix", "test", "typo"} <= set(scenario.origin.files("main"))


@asynchronous
async def test_a_recorded_merge_by_the_host_counts_for_its_own_head_alone(github_scenario: StartScenario):
    """The message names the pull request that has it, and the head of another one, whose first change it has too."""
    async with github_scenario(Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"both": "1\n"})
        victim = scenario.origin.tip("feature1")
        scenario.push(1, {"both": None, "test": "1\n"})
        message = f"Correct a typo\n\nMergeyard-Pull-Request: 2\nMergeyard-Head: {victim}\n"
        await open_fork_with_message(scenario, message, {"both": "1\n"})
        await scenario.comment(2, f"/merge {scenario.forge.head(2)}")
        await scenario.passes(2)
        assert f"Mergeyard-Head: {victim}" in messages_on_main(scenario)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: rebase_differs"
        assert "both" in scenario.origin.files("main")


async def open_fork_with_message(scenario: ForgeScenario, message: str, files: Files) -> None:
    assert isinstance(scenario.forge, GithubDriver)
    fork = scenario.forge.fork
    fork.origin.run("fetch", "--quiet", scenario.origin.url, "+refs/heads/main:refs/heads/main")
    fork.origin.branch("typo", base="main", files=files, message=message)
    scenario.forge.acme.open_pull_request("typo", title="Correct a typo", fork=fork)
    await scenario.wait_until_idle()


def messages_on_main(scenario: ForgeScenario) -> str:
    return "\n".join(scenario.origin.log("main", "%B"))
