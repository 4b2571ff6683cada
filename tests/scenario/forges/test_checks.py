"""Checks are read from the forge that knows them, and those that must pass from what protects the target."""

from mergeyard.domain.config import Config, DirectMergeMode
from mergeyard.domain.statuses import StatusState
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL, ForgeScenario
from tests.support.forges.faults import ALWAYS, Answers
from tests.support.forges.github.facts import Guard
from tests.support.forges.github.repository import FakeRepository
from tests.support.meeting_places.github import GithubPlace
from tests.support.scenario import MINUTE, Stage

UNPROTECTED = Stage(rules="version = 1\n")


@asynchronous
async def test_what_protects_the_target_must_pass(story: Stories):
    async with story(stage=UNPROTECTED) as scenario:
        name = scenario.place.protect_main()
        scenario.open(1)
        scenario.place.satisfy(scenario.place.head(1))
        scenario.place.push_to_main({"news": "n"})
        await scenario.a_moment_passes()
        await scenario.submit(1)
        assert scenario.run_of(1).required == (name,)
        scenario.place.satisfy(scenario.run_of(1).tip)
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_what_one_app_must_report_counts_from_no_other_though_the_repository_names_it_itself(
    github_story: Stories,
):
    async with github_story() as scenario:
        acme = await submit_one_whose_tests_one_app_reports(scenario)
        acme.reports(scenario.run_of(1).tip, "unit", "success")
        await scenario.rest()
        assert scenario.picture == "main ← 1…"
        acme.reports(scenario.run_of(1).tip, "unit", "success", app=7)
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_what_one_app_must_report_counts_from_no_other_after_a_restart_either(github_story: Stories):
    async with github_story(stage=UNPROTECTED) as scenario:
        acme = await submit_one_whose_tests_one_app_reports(scenario)
        await scenario.service.stop()
        acme.reports(scenario.run_of(1).tip, "unit", "success")
        scenario.place.faults.plan(Answers(503), "/rules/", times=ALWAYS)
        await scenario.starts()
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"
        scenario.place.faults.clear()
        acme.reports(scenario.run_of(1).tip, "unit", "success", app=7)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


async def submit_one_whose_tests_one_app_reports(scenario: ForgeScenario) -> FakeRepository:
    assert isinstance(scenario.place, GithubPlace)
    acme = scenario.place.acme
    acme.guards["main"] = Guard(contexts=["unit"], apps={"unit": 7})
    scenario.open(1)
    acme.reports(scenario.place.head(1), "unit", "success", app=7)
    scenario.place.push_to_main({"news": "n"})
    await scenario.a_moment_passes()
    await scenario.submit(1)
    assert scenario.picture == "main ← 1…"
    return acme


@asynchronous
async def test_where_nothing_must_pass_nothing_merges(story: Stories):
    async with story(stage=UNPROTECTED) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: no_required_statuses"
        assert not scenario.place.is_merged(1)


@asynchronous
async def test_checks_and_statuses_are_told_with_their_links(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        scenario.place.run_check(tip, "lint", "https://ci.example/lint")
        scenario.place.report(tip, "deploy", StatusState.PENDING, "https://ci.example/deploy")
        await scenario.rest()
        details = await scenario.details(1)
        links = {run["name"]: run["url"] for suite in details["checkSuites"] for run in suite["checkRuns"]}
        links |= {status["context"]: status["url"] for status in details["statusChecks"]}
        assert links["deploy"] == "https://ci.example/deploy"
        assert links["lint"].startswith("http")


@asynchronous
async def test_checks_are_told_by_their_suites(github_story: Stories):
    async with github_story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.run_check(scenario.run_of(1).tip, "lint", "https://ci.example/lint")
        await scenario.hear(scenario.run_of(1).tip, StatusState.PENDING)
        await scenario.rest()
        details = await scenario.details(1)
        (suite,) = details["checkSuites"]
        assert suite["checkRuns"] == [
            {"name": "lint", "url": "https://ci.example/lint", "status": "completed", "conclusion": "success"}
        ]
        (unit,) = details["statusChecks"]
        assert (unit["context"], unit["state"]) == ("unit", "pending")


@asynchronous
async def test_our_own_status_is_nobodys_check(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.report(scenario.run_of(1).tip, "mergeyard", StatusState.FAILURE)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_check_that_is_done_again_counts_as_it_ended_last(story: Stories):
    async with story(Config(required_statuses=("unit", "lint"))) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1, check="lint")
        await scenario.passes(1)
        assert scenario.place.is_merged(1)


@asynchronous
async def test_a_head_on_the_tip_whose_checks_passed_merges_directly(story: Stories):
    async with story(Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        scenario.place.report(scenario.place.head(1), "unit", StatusState.SUCCESS)
        await scenario.submit(1)
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.place.is_merged(1)


@asynchronous
async def test_a_head_on_the_tip_whose_checks_did_not_pass_is_tested(story: Stories):
    async with story(Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        scenario.place.report(scenario.place.head(1), "unit", StatusState.FAILURE)
        await scenario.submit(1)
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_an_overdue_run_gets_a_fresh_look_before_it_is_judged(story: Stories):
    async with story(Config(testing_timeout_minutes=1)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.deliveries.losing = True
        await scenario.time_passes(MINUTE - 1)
        await scenario.hear(scenario.run_of(1).tip)
        await scenario.time_passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_an_overdue_run_that_nobody_reported_on_fails(story: Stories):
    async with story(Config(testing_timeout_minutes=1)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.a_minute_passes()
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_timeout"


@asynchronous
async def test_while_the_forge_cannot_be_read_no_run_is_overdue(story: Stories):
    async with story(Config(testing_timeout_minutes=1), poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.break_down()
        await scenario.hear(scenario.run_of(1).tip)
        await scenario.time_passes(2 * MINUTE)
        assert scenario.picture == "main ← 1…"
        scenario.place.faults.clear()
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


# Mergeability.


@asynchronous
async def test_as_long_as_the_forge_does_not_know_whether_it_merges_it_waits(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        scenario.place.ponder(1)
        await scenario.submit(1)
        assert (await scenario.stay(1)).state == "not_ready"
        await scenario.a_moment_passes()
        assert (await scenario.stay(1)).state == "not_ready"
        scenario.place.decide(1)
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_what_the_forge_finds_in_conflict_waits_until_somebody_repairs_it(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1, files={"README": "one\n"})
        scenario.place.push_to_main({"README": "other\n"})
        await scenario.submit(1)
        assert (await scenario.stay(1)).state == "not_ready"
        scenario.place.push_to_main({"README": "hello\n"})
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
