"""A forge that fails, is slow, forgets or asks for patience: nobody pays for it who did nothing wrong."""

import pytest

from mergeyard.domain.config import Config, LandingMethod
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL
from tests.support.forges.faults import ALWAYS, Answers, Fault, LosesReply, Stale
from tests.support.meanwhile import Adds, Meanwhile
from tests.support.meeting_places.place import FINE
from tests.support.scenario import MINUTE, SECOND

EVERY_TROUBLE: list[Fault] = [Answers(503), LosesReply(), Answers(200, {}, b"<html>")]
every_answer = pytest.mark.parametrize("answers", range(3))
landings = pytest.mark.parametrize("landing", list(LandingMethod))


@asynchronous
async def test_who_submits_while_the_forge_is_down_is_told_to_come_again(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.rest()
        scenario.break_down()
        answer = await scenario.ask("submitPullRequest", pr={"number": 1})
        assert (answer.status_code, answer.json()["code"]) == (503, "provider_unavailable")
        assert answer.json()["retryable"]
        scenario.place.faults.clear()
        await scenario.submit_by_api(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_while_the_forge_is_down_reading_and_cancelling_still_answer(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.break_down()
        assert (await scenario.ask("getQueue")).status_code == 200
        assert (await scenario.ask("getSubmittedPullRequest", pr={"number": 1})).json()["state"] == "testing"
        answer = await scenario.ask("cancelPullRequest", pr={"number": 1})
        assert answer.json()["state"] == "cancelled"


@asynchronous
async def test_a_command_that_nobody_could_look_into_at_once_is_obeyed_later(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.rest()
        for trouble in EVERY_TROUBLE:
            scenario.place.faults.plan(trouble, scenario.place.paths.api)
        await scenario.say(1, "/merge")
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        assert scenario.signs(1) == [(FINE,)]


@asynchronous
async def test_a_label_that_could_not_be_obeyed_at_once_is_obeyed_later(story: Stories):
    async with story() as scenario:
        faults, paths = scenario.place.faults, scenario.place.paths
        scenario.open(1)
        await scenario.rest()
        faults.plan(Meanwhile(lambda: faults.plan(Answers(503), paths.pull, method="GET")), paths.comments)
        await scenario.label(1)
        assert scenario.picture == "main"
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        await scenario.unlabel(1)
        assert scenario.picture == "main"


@every_answer
@asynchronous
async def test_a_label_that_is_taken_off_again_takes_it_out_whichever_answer_of_the_store_was_lost(
    github_story: Stories, answers: int
):
    async with github_story() as scenario:
        scenario.open(1)
        await scenario.rest()
        scenario.store.answers = answers
        await scenario.label(1)
        await scenario.unlabel(1)
        await scenario.a_minute_passes()
        assert scenario.picture == "main"


@every_answer
@asynchronous
async def test_a_label_takes_it_out_though_the_queue_went_on_before_anybody_heard_what_came_of_it(
    github_story: Stories, answers: int
):
    async with github_story() as scenario:
        scenario.open(1, 2)
        await scenario.rest()
        scenario.store.answers = answers
        await scenario.label(1)
        await scenario.submit(2)
        await scenario.a_minute_passes()
        assert [await scenario.state(number) for number in (1, 2)] == ["testing: waiting_for_checks"] * 2
        await scenario.unlabel(1)
        assert scenario.picture == "main ← 2…"


@landings
@asynchronous
async def test_trouble_while_it_lands_is_waited_for(story: Stories, landing: LandingMethod):
    async with story(Config(landing=landing)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.hear(scenario.run_of(1).tip)
        paths = scenario.place.paths
        fatal = paths.merge if landing is LandingMethod.PROVIDER_MERGE else paths.git
        for trouble in EVERY_TROUBLE:
            scenario.place.faults.plan(trouble, fatal)
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.place.is_merged(1)
        assert len(scenario.landed()) == 1


@asynchronous
async def test_an_outage_in_the_middle_of_everything_fails_nobody(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        scenario.break_down()
        await scenario.say(2, "/merge")
        await scenario.hear(scenario.run_of(1).tip)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "testing: provider_unavailable"
        scenario.place.faults.clear()
        await scenario.time_passes(2 * MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "testing: waiting_for_checks"


@asynchronous
async def test_a_page_in_place_of_an_answer_of_git_deletes_nothing(story: Stories):
    async with story() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        page = Answers(200, {"content-type": "text/html"}, b"<html>We are back soon</html>")
        scenario.place.faults.plan(page, "/info/refs$", times=ALWAYS)
        await scenario.passes(1)
        await scenario.a_moment_passes()
        assert (await scenario.stay(1)).state == "tests_passed"
        scenario.place.faults.clear()
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.picture == "main ← 2…"


@asynchronous
async def test_a_head_that_git_does_not_show_yet_is_waited_for(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        scenario.place.rooms.hidden += ["refs/pull", "refs/merge-requests", "refs/heads/feature1"]
        await scenario.submit(1)
        await scenario.a_moment_passes()
        assert scenario.test_branches() == []
        scenario.place.rooms.hidden.clear()
        await scenario.a_minute_passes()
        assert scenario.test_branches() == [scenario.branch_of(1)]


@asynchronous
async def test_what_somebody_said_before_a_long_outage_is_obeyed_after_it(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        scenario.break_down()
        await scenario.say(1, "/merge")
        await scenario.time_passes(30 * MINUTE)
        scenario.place.faults.clear()
        await scenario.time_passes(2 * MINUTE)
        assert scenario.picture == "main ← 1…"


# Limits.


@asynchronous
async def test_a_forge_that_asks_us_to_wait_hears_nothing_until_then(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(Answers(429, {"retry-after": "90"}), scenario.place.paths.api)
        await scenario.hear(scenario.run_of(1).tip)
        await scenario.rest()
        asked = scenario.asked()
        await scenario.time_passes(89 * SECOND)
        assert scenario.asked() == asked
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


@landings
@asynchronous
async def test_the_last_of_the_budget_is_kept_for_landings(story: Stories, landing: LandingMethod):
    async with story(Config(landing=landing), poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.a_moment_passes()
        reset = (scenario.clock.now() + 10 * MINUTE) // SECOND
        low = Adds({"x-ratelimit-remaining": "400", "x-ratelimit-limit": "5000", "x-ratelimit-reset": str(reset)})
        scenario.place.faults.plan(low, scenario.place.paths.pull, method="GET", times=ALWAYS)
        await scenario.hear(scenario.run_of(1).tip)
        await scenario.a_moment_passes()
        assert scenario.place.is_merged(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        laps = scenario.laps()
        await scenario.time_passes(5 * MINUTE)
        assert scenario.laps() == laps


# Old answers.


@asynchronous
async def test_an_old_answer_about_checks_only_delays(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        scenario.place.faults.plan(Stale(), scenario.place.paths.statuses, times=3)
        await scenario.submit(1)
        await scenario.a_moment_passes()
        await scenario.passes(1)
        await scenario.time_passes(2 * MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_an_old_answer_about_its_head_merges_nothing_that_was_not_tested(story: Stories):
    async with story(Config(landing=LandingMethod.PROVIDER_MERGE)) as scenario:
        scenario.open(1)
        scenario.place.faults.plan(Stale(), scenario.place.paths.pull, method="GET", times=ALWAYS)
        await scenario.submit(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.passes(1)
        await scenario.a_moment_passes()
        assert "evil" not in scenario.origin.files("main")
        assert not scenario.place.is_merged(1)
        scenario.place.faults.clear()
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_one_that_is_still_shown_as_open_after_it_landed_is_merged_all_the_same(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.faults.plan(Stale(), scenario.place.paths.pull, method="GET", times=ALWAYS)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.landed()) == 1
