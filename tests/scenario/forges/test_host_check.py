"""A host check compares the rules of the Git host with the queues: on the page of a server, and by the command."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner, Result

from mergeyard.cli import app
from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import QueueSetup
from mergeyard.service.metrics import REGISTRY, measure_hosts
from mergeyard.service.repositories import read_queue_setup
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.github import TOKEN, GithubDriver
from tests.support.forge_scenario import ForgeScenario, a_forge_scenario
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.rulesets import ROLE_IDS, BypassActor, required_checks_rule, rule
from tests.support.scenario import ScenarioSetup
from tests.support.web_client import a_signed_in_client

FROM_RULES = ScenarioSetup(repository_config="version = 1\n")
SQUASHES = Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=MergeMethod.SQUASH)


def make_protected(folder: Path, clock: Clock) -> GithubDriver:
    """A repository whose main branch requires the check `unit`."""
    driver = GithubDriver(folder, clock)
    driver.acme.add_ruleset("checks", [required_checks_rule("unit")])
    return driver


def acme_of(scenario: ForgeScenario) -> FakeRepository:
    return cast(GithubDriver, scenario.forge).acme


async def read_setup(scenario: ForgeScenario) -> QueueSetup:
    return await read_queue_setup(scenario.store, scenario.queue_actor.queue, scenario.clock.now())


async def merge_one(scenario: ForgeScenario, number: int = 1) -> None:
    scenario.open(number)
    await scenario.report(scenario.forge.head(number), StatusState.SUCCESS)
    await scenario.submit(number)
    await scenario.passes(number)
    await scenario.advance_one_second()


def check(folder: Path, scenario: ForgeScenario, repo: str = "git.local/Acme/App") -> Result:
    """The command, on the machine of the server, while the server uses its database."""
    (folder / "token").write_text(TOKEN)
    settings = folder / "mergeyard.toml"
    settings.write_text(
        f'public_url = "https://queue.example"\ndata_dir = "{folder / "data"}"\n'
        '[hosts."git.local"]\nprovider = "github"\ntoken_file = "token"\n'
        f'url = "{scenario.forge.settings.url}"\napi_url = "{scenario.forge.settings.api_url}"\n'
    )
    return CliRunner().invoke(app, ["host", "check", repo, "--config", str(settings)])


@asynchronous
async def test_what_the_git_host_still_accepts_is_a_metric_on_the_page_and_in_the_check(tmp_path: Path):
    labels = {"host": "git.local", "account": "token", "api": "rest"}
    async with (
        a_forge_scenario(tmp_path, make_protected) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
    ):
        measure_hosts(scenario.service.repositories.hosts)
        limits = cast(GithubDriver, scenario.forge).github.limits
        for number, left, effect in ((1, 1021, ""), (2, 900, ": dialogs and progress in comments wait until then")):
            limits.leave(left)
            scenario.open(number)
            await scenario.wait_until_idle()
            shown = REGISTRY.get_sample_value("mergeyard_host_requests_remaining", labels)
            assert shown is not None
            assert left - 20 < shown < left
            assert REGISTRY.get_sample_value("mergeyard_host_requests_limit", labels) == 5000
            page = await visitor.get("/administration/hosts")
            assert f"git.local accepts {shown:,.0f} of 5,000 requests (token) until 23:13 UTC" in page.text
            assert effect in page.text
        checked = await visitor.post("/administration/hosts", host="git.local", repo="acme/app")
        assert "of 5,000 requests (token) until 23:13 UTC: dialogs and progress in comments wait" in checked.text


@asynchronous
async def test_the_page_checks_the_queues_of_the_server_and_what_ci_reported_to_them(tmp_path: Path):
    async with (
        a_forge_scenario(tmp_path, make_protected, setup=FROM_RULES) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
    ):
        assert (await read_setup(scenario)).reported_checks is None
        await merge_one(scenario)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await read_setup(scenario) == QueueSetup(branch="main", reported_checks=frozenset({"unit"}))
        acme_of(scenario).add_ruleset("more", [rule("update"), required_checks_rule("lint")])
        page = await visitor.post("/administration/hosts", host="git.local", repo="acme/app")
        assert 'The ruleset "more" refuses the queue\'s push to main (*Restrict updates*)' in page.text
        assert "CI did not report lint on the last test branches of main" in page.text


@asynchronous
async def test_runs_that_need_other_checks_show_nothing_about_the_rules(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario:
        await merge_one(scenario)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert (await read_setup(scenario)).reported_checks is None
        assert not (await read_setup(scenario)).needs_push_checks


@pytest.mark.parametrize(
    ("config", "needs"),
    [
        (Config(), True),
        (Config(required_statuses=("unit",)), False),
        (Config(create_prs_for_testing_branches=True), False),
    ],
)
@asynchronous
async def test_named_checks_and_pull_requests_of_test_branches_need_no_checks_of_pushes(
    tmp_path: Path, config: Config, needs: bool
):
    async with a_forge_scenario(tmp_path, make_protected, config, setup=FROM_RULES) as scenario:
        assert (await read_setup(scenario)).needs_push_checks is needs


@pytest.mark.long
@asynchronous
async def test_a_run_that_passed_with_the_checks_of_a_head_shows_nothing_about_test_branches(tmp_path: Path):
    direct = Config(direct_merge_mode=DirectMergeMode.ALWAYS)
    async with a_forge_scenario(tmp_path, make_protected, direct, setup=FROM_RULES) as scenario:
        acme_of(scenario).own_rulesets[0].bypass = [BypassActor("RepositoryRole", ROLE_IDS["write"])]
        scenario.open(1)
        await scenario.report(scenario.forge.head(1), StatusState.SUCCESS)
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "merged: merged_directly"
        assert (await read_setup(scenario)).reported_checks is None


@asynchronous
async def test_the_command_checks_the_queues_in_the_database_of_a_running_server(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver, SQUASHES) as scenario:
        acme_of(scenario).add_ruleset("more", [rule("update")])
        result = await asyncio.to_thread(check, tmp_path, scenario)
        assert result.stderr == ""
        assert result.exit_code == 1
        assert (
            '✗ The ruleset "more" refuses the queue\'s merges by squash into main (*Restrict updates*)' in result.stdout
        )
        assert "Before you create a queue" not in result.stdout
        assert "https://queue.example/hooks/github/git.local" in result.stdout


@asynchronous
async def test_a_database_that_cannot_be_read_does_not_stop_the_command(tmp_path: Path):
    async with a_forge_scenario(tmp_path / "server", GithubDriver, SQUASHES) as scenario:
        acme_of(scenario).add_ruleset("more", [rule("update")])
        for content, reason in ((None, "has no database"), (b"nonsense " * 999, "is not a database")):
            if content is not None:
                (tmp_path / "data").mkdir()
                (tmp_path / "data" / "mergeyard.db").write_bytes(content)
            result = await asyncio.to_thread(check, tmp_path, scenario)
            assert result.stderr.startswith("The queues could not be read, so the default branch is checked: ")
            assert reason in result.stderr
            assert result.stderr.count("\n") == 1
            assert "! Before you create a queue with `landing` set to `provider_merge`: The ruleset" in result.stdout
        assert [path.name for path in (tmp_path / "data").iterdir()] == ["mergeyard.db"]
