"""Trouble that passes: the host is gone, the disk is full. It is shown, blames nobody, and all goes on afterwards."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.submissions import Errand, Wish
from mergeyard.service.views import PullView
from tests.support.asynchronous import asynchronous
from tests.support.pushes import AFTER, BUILD, LANDING, Gate
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, Stage, a_scenario

SELDOM = Stage(look_every=10 * SECOND)


@asynchronous
async def test_a_repository_that_vanishes_is_shown_and_all_goes_on_when_it_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        away = vanish(scenario)
        await scenario.time_passes(2 * SECOND)
        assert await scenario.state(1) == "testing: provider_unavailable"
        come_back(scenario, away)
        await scenario.time_passes(2 * SECOND)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_verdict_that_comes_while_the_repository_is_away_lands_when_it_is_back(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = vanish(scenario)
        await scenario.passes(1)
        await scenario.time_passes(5 * SECOND)
        assert (await scenario.stay(1)).state == "tests_passed"
        come_back(scenario, away)
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_time_without_the_host_does_not_count(tmp_path: Path):
    async with a_scenario(tmp_path, Config(testing_timeout_minutes=1), SELDOM) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.time_passes(30 * SECOND)
        away = vanish(scenario)
        await scenario.time_passes(10 * MINUTE)
        assert (await scenario.stay(1)).state == "testing"
        come_back(scenario, away)
        await scenario.time_passes(20 * SECOND)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.time_passes(MINUTE)
        assert (await scenario.stay(1)).state == "pending_failure"


@asynchronous
async def test_cancelling_needs_no_host(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = vanish(scenario)
        await scenario.cancel(1)
        assert await scenario.state(1) == "cancelled: cancelled_by_user"
        come_back(scenario, away)
        await scenario.time_passes(MINUTE)
        assert scenario.test_branches() == []


@asynchronous
async def test_a_request_that_cannot_be_stored_fails_and_changes_nothing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.store.failures = 1
        with pytest.raises(StoreTrouble):
            await scenario.submit(1)
        assert len(scenario.keeper.queue.submissions) == 0
        await scenario.submit(1)
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_status_that_could_not_be_stored_was_never_heard(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = ["unit", "lint"]\n'
    async with a_scenario(tmp_path, stage=Stage(rules=rules)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.store.failures = 1
        with pytest.raises(StoreTrouble):
            await scenario.passes(1)
        await scenario.passes(1, check="lint")
        assert (await scenario.view(1)).why.message.endswith("Not reported: unit.")
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_what_is_taken_off_while_an_answer_of_the_store_is_lost_stays_away(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        before = scenario.origin.tip("main")
        scenario.store.answers = 1  # that the target was touched, but not what was seen of it
        scenario.origin.commit("main", {"foreign.txt": "1"})
        scenario.open(1)
        await scenario.time_passes(SECOND)
        scenario.origin.set("main", before)
        await scenario.submit(1)
        await scenario.time_passes(MINUTE)
        assert await scenario.state(1) == "failed: contains_removed_commit"


@pytest.mark.parametrize("failures", [1, 2, 3])
@asynchronous
async def test_a_build_whose_outcome_could_not_be_stored_is_recorded_later(tmp_path: Path, failures: int):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        scenario.store.failures = failures
        gate.open()
        await scenario.rest()
        await scenario.time_passes(10 * SECOND)
        assert scenario.picture == "main ← 1…"
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.parametrize("failures", [1, 2, 3])
@asynchronous
async def test_a_landing_whose_outcome_could_not_be_stored_is_recorded_later(tmp_path: Path, failures: int):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, LANDING)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.hear(scenario.run_of(1).tip)
        await gate.arrival()
        scenario.store.failures = failures
        gate.open()
        await scenario.rest()
        await scenario.time_passes(10 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.origin.log("main", "%H")) == 2


@asynchronous
async def test_news_that_could_not_be_stored_are_told_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull(1, state="closed")
        scenario.store.failures = 1
        await scenario.time_passes(5 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_an_early_status_is_heard_even_if_the_disk_was_full_at_that_moment(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = Gate(scenario.origin, BUILD, AFTER)
        scenario.open(1)
        await scenario.hand_in(1)
        await gate.arrival()
        await scenario.hear(scenario.origin.tip(scenario.test_branches()[0]))
        gate.open()
        await scenario.keeper.until(lambda queue: any(run.pushed for run in queue.runs.values()))
        scenario.store.failures = 1
        await scenario.rest()
        assert scenario.store.failures == 0
        await scenario.time_passes(10 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_host_and_a_disk_that_fail_together_stop_nobody_from_watching(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        away = vanish(scenario)
        scenario.store.failures = 2
        await scenario.time_passes(3 * SECOND)
        come_back(scenario, away)
        scenario.set_pull(1, state="closed")
        await scenario.time_passes(2 * SECOND)
        assert await scenario.state(1) == "cancelled: pr_closed"


@asynchronous
async def test_of_several_requests_in_one_turn_only_the_poisonous_one_fails(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.time_passes(SECOND)
        outcomes = await asyncio.gather(
            scenario.hand_in(1),
            scenario.service.submissions.submit(poisonous(2), Wish()),
            scenario.hand_in(3),
            return_exceptions=True,
        )
        await scenario.rest()
        assert list(map(type, outcomes)) == [type(None), ZeroDivisionError, type(None)]
        assert {stay.number for stay in scenario.keeper.queue.submissions.values()} == {1, 3}
        assert len(scenario.runs()) == 2


@asynchronous
async def test_old_answers_are_forgotten_even_after_the_disk_was_full_once(tmp_path: Path):
    async with a_scenario(tmp_path, stage=Stage(look_every=60 * MINUTE)) as scenario:
        scenario.store.failures = 1
        await scenario.time_passes(60 * MINUTE)
        assert scenario.store.failures == 0
        assert scenario.clock.next_alarm() is not None
        scenario.store.failures = 1
        await scenario.time_passes(60 * MINUTE)
        assert scenario.store.failures == 0


def vanish(scenario: Scenario) -> Path:
    return scenario.origin.path.rename(scenario.folder / "away.git")


def come_back(scenario: Scenario, away: Path) -> None:
    away.rename(scenario.origin.path)


def poisonous(number: int) -> Errand:
    def present(_: PullView) -> NoReturn:
        raise ZeroDivisionError

    return Errand(key=KEY, number=PrNumber(number), actor="eve", present=present)
