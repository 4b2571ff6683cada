"""Foretelling: answers show what was foretold, or else the guess, and what was promised is held against the end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.domain.config import Config
from mergeyard.domain.expected import Expected
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.states import QueueState
from mergeyard.engine import estimating
from mergeyard.ports.foretelling import ForetellingTrouble
from mergeyard.ports.store import Page
from mergeyard.service.foretelling.calibration import Held
from mergeyard.service.foretelling.foretelling import INTERVAL, REST_AFTER_TROUBLE, SHORTEST_REST, STALE
from tests.support.asynchronous import asynchronous
from tests.support.foretelling import PatientForeteller
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, Stage, a_scenario

DAY = 24 * 60 * MINUTE


@asynccontextmanager
async def a_queue_with_a_past(folder: Path, foreteller: PatientForeteller | None) -> AsyncGenerator[Scenario]:
    """One run was green after ten minutes."""
    stage = Stage(look_every=DAY, foreteller=foreteller)
    async with a_scenario(folder, Config(concurrency=1), stage) as scenario:
        scenario.open(1, 2, 3, 4)
        await scenario.submit(1)
        await scenario.time_passes(10 * MINUTE)
        await scenario.passes(1)
        await scenario.time_passes(SHORTEST_REST)
        yield scenario


async def submit_and_foretell(scenario: Scenario, *numbers: int) -> None:
    await scenario.submit(*numbers)
    await scenario.time_passes(SHORTEST_REST)


async def estimates(scenario: Scenario, number: int) -> tuple[Instant | None, Instant | None]:
    view = await scenario.view(number)
    return view.merges_at, view.merges_by


def guess(scenario: Scenario, number: int, position: int) -> tuple[Instant, Instant]:
    queue = scenario.keeper.queue
    outlook = estimating.outlook(queue, scenario.clock.now())
    assert outlook is not None
    expected = outlook.of(queue.submissions[queue.tickets[scenario.errand(number).number]], position)
    assert expected is not None
    return expected.middle, expected.late


def forecast(scenario: Scenario, number: int) -> tuple[Instant, Instant]:
    ticket = scenario.keeper.queue.tickets[scenario.errand(number).number]
    foretold = scenario.keeper.forecast[ticket]
    assert foretold is not None
    return foretold.middle, foretold.late


@asynchronous
async def test_what_was_foretold_is_shown_wherever_one_asks(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await submit_and_foretell(scenario, 2, 3)
        assert await estimates(scenario, 3) == forecast(scenario, 3)
        listed, _ = await scenario.service.listing.page(KEY, Page(take=1))
        assert (listed[0].merges_at, listed[0].merges_by) == forecast(scenario, 3)
        seen = (await scenario.service.queues.show(KEY)).pulls[-1]
        assert (seen.merges_at, seen.merges_by) == forecast(scenario, 3)
        dossier = await scenario.service.dossiers.open(KEY, scenario.errand(3).number)
        assert (dossier.view.merges_at, dossier.view.merges_by) == forecast(scenario, 3)


@asynchronous
async def test_whoever_is_not_in_the_last_forecast_is_guessed_at(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await scenario.submit(2)
        assert await estimates(scenario, 2) == guess(scenario, 2, 1)
        await scenario.time_passes(SHORTEST_REST)
        await scenario.submit(3)
        assert await estimates(scenario, 2) == forecast(scenario, 2)
        assert await estimates(scenario, 3) == guess(scenario, 3, 2)


@asynchronous
async def test_without_a_foreteller_everybody_is_guessed_at(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, None) as scenario:
        await scenario.submit(2)
        await scenario.time_passes(MINUTE)
        assert await estimates(scenario, 2) == guess(scenario, 2, 1)


@asynchronous
async def test_to_one_that_will_rather_not_merge_nobody_promises_a_time(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await scenario.submit(2)
        ticket = scenario.keeper.queue.tickets[scenario.errand(2).number]
        scenario.keeper.forecast = {ticket: None}
        assert await estimates(scenario, 2) == (None, None)


@asynchronous
async def test_nobody_is_promised_a_time_that_is_past(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await submit_and_foretell(scenario, 2)
        middle, late = forecast(scenario, 2)
        scenario.clock.move_to(later(middle, 1))
        assert await estimates(scenario, 2) == (later(middle, 1), max(late, later(middle, 1)))


@asynchronous
async def test_a_queue_that_is_paused_promises_nothing(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await submit_and_foretell(scenario, 2)
        await scenario.update(state=QueueState.PAUSED)
        assert await estimates(scenario, 2) == (None, None)
        await scenario.time_passes(SHORTEST_REST)
        assert not scenario.keeper.forecast


@asynchronous
async def test_a_queue_of_which_nothing_can_be_foretold_costs_nothing(tmp_path: Path):
    foreteller = PatientForeteller()
    async with a_queue_with_a_past(tmp_path, foreteller) as scenario:
        assert foreteller.asked == []
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(2)
        await scenario.time_passes(MINUTE)
        assert foreteller.asked == []


@asynchronous
async def test_however_much_happens_it_is_asked_once_in_a_while_and_for_the_latest(tmp_path: Path):
    foreteller = PatientForeteller()
    async with a_queue_with_a_past(tmp_path, foreteller) as scenario:
        await scenario.submit(2)
        await scenario.time_passes(INTERVAL)
        await scenario.submit(3)
        await scenario.submit(4)
        await scenario.time_passes(INTERVAL)
        assert [len(queue.submissions) for queue in foreteller.asked] == [1]
        await scenario.time_passes(SHORTEST_REST)
        assert [len(queue.submissions) for queue in foreteller.asked] == [1, 3]


@asynchronous
async def test_where_nothing_happens_time_alone_is_a_reason_to_ask_again(tmp_path: Path):
    foreteller = PatientForeteller()
    async with a_queue_with_a_past(tmp_path, foreteller) as scenario:
        await submit_and_foretell(scenario, 2)
        before = forecast(scenario, 2)
        await scenario.time_passes(STALE + INTERVAL)
        assert len(foreteller.asked) == 2
        await scenario.time_passes(15 * MINUTE)
        assert forecast(scenario, 2) > before


@asynchronous
async def test_where_foretelling_is_in_trouble_it_is_guessed_and_tried_again_later(tmp_path: Path):
    foreteller = PatientForeteller()
    async with a_queue_with_a_past(tmp_path, foreteller) as scenario:
        await submit_and_foretell(scenario, 2)
        foreteller.trouble = ForetellingTrouble("it broke off")
        await submit_and_foretell(scenario, 3)
        assert await estimates(scenario, 2) == guess(scenario, 2, 1)
        asked, foreteller.trouble = len(foreteller.asked), None
        await scenario.submit(4)
        await scenario.time_passes(MINUTE)
        assert len(foreteller.asked) == asked
        await scenario.time_passes(REST_AFTER_TROUBLE)
        assert await estimates(scenario, 2) == forecast(scenario, 2)


@asynchronous
async def test_the_first_promise_is_held_against_the_time_of_the_merge(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await submit_and_foretell(scenario, 2)
        middle, late = forecast(scenario, 2)
        assert middle < late
        await scenario.time_passes(later(middle, SECOND) - scenario.clock.now())
        await scenario.passes(2)
        await scenario.time_passes(SHORTEST_REST)
        calibration = scenario.service.calibration
        assert calibration.of([scenario.keeper]) == Held(merged=1, by_middle=0, by_late=1)
        await submit_and_foretell(scenario, 3)
        await scenario.passes(3)
        await scenario.time_passes(SHORTEST_REST)
        assert calibration.of([scenario.keeper]) == Held(merged=2, by_middle=1, by_late=2)
        assert calibration.of([]) == Held()


@asynchronous
async def test_whoever_merged_while_it_was_being_foretold_was_promised_nothing(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        calibration, merged = scenario.service.calibration, (await scenario.stay(1)).ticket
        calibration.remember(scenario.keeper, {merged: Expected(scenario.clock.now(), scenario.clock.now())})
        await calibration.compare(scenario.keeper)
        assert calibration.of([scenario.keeper]) == Held()


@asynchronous
async def test_whoever_did_not_merge_is_not_counted(tmp_path: Path):
    async with a_queue_with_a_past(tmp_path, PatientForeteller()) as scenario:
        await submit_and_foretell(scenario, 2, 3)
        await scenario.cancel(3)
        await scenario.fails(2)
        await scenario.time_passes(SHORTEST_REST)
        assert scenario.service.calibration.of([scenario.keeper]) == Held()


@asynchronous
async def test_when_the_server_ends_so_does_the_foreteller(tmp_path: Path):
    foreteller = PatientForeteller()
    async with a_queue_with_a_past(tmp_path, foreteller):
        assert not foreteller.closed
    assert foreteller.closed
