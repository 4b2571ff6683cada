"""Every setting of a queue: its default, the edges of its range, and that a bad one changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.api.desk import StandingDesk, a_desk, a_standing_desk, an_empty_desk, problem_of
from tests.contract.api.settings_table import DEFAULTS, NO_SETTINGS, SETTINGS
from tests.support.asynchronous import asynchronous


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingDesk]:
    with a_standing_desk(tmp_path_factory.mktemp("settings")) as standing:
        yield standing


@asynchronous
async def test_a_queue_begins_with_the_defaults(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        created = await desk.ask("createQueue")
        assert {name: created[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", SETTINGS)
def test_a_good_value_is_taken_and_told_again(standing: StandingDesk, name: str):
    for value in SETTINGS[name].good:
        told = standing.wait_for(standing.desk.ask("updateQueue", **{name: value}))
        assert told[name] == value
        assert standing.wait_for(standing.desk.ask("getQueue"))[name] == value
        assert type(told[name]) is type(value)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_value_changes_nothing_not_even_what_stands_beside_it(standing: StandingDesk, name: str):
    before = standing.wait_for(standing.desk.ask("getQueue"))
    for value in SETTINGS[name].bad:
        beside: dict[str, Any] = {"commentsEnabled": not before["commentsEnabled"], "state": "PAUSED"}
        response = standing.wait_for(standing.desk.post("updateQueue", **beside | {name: value}))
        problem = problem_of(response)
        assert problem["code"] == "invalid_request", value
        assert problem["errors"][0]["pointer"].startswith(f"/{name}"), value
    assert standing.wait_for(standing.desk.ask("getQueue")) == before


@pytest.mark.parametrize("name", NO_SETTINGS)
def test_what_is_no_setting_is_never_dropped_in_silence(standing: StandingDesk, name: str):
    for endpoint in ("createQueue", "updateQueue"):
        assert standing.wait_for(standing.desk.refuses(endpoint, **{name: 1})) == "unknown_field"


def test_a_new_queue_has_no_say_about_its_state(standing: StandingDesk):
    for name, value in (("state", "PAUSED"), ("deleteRequiredStatuses", True)):
        assert standing.wait_for(standing.desk.refuses("createQueue", **{name: value})) == "unknown_field"


@pytest.mark.parametrize("state", ["SWITCHING_MODES", "STOPPED", "", None, 1])
def test_only_three_states_can_be_asked_for(standing: StandingDesk, state: object):
    assert standing.wait_for(standing.desk.refuses("updateQueue", state=state)) == "invalid_request"


def test_words_are_taken_in_any_case_and_told_in_one(standing: StandingDesk):
    told = standing.wait_for(standing.desk.ask("updateQueue", state="draining", mode="PARALLEL", mergeMethod="Squash"))
    assert (told["state"], told["mode"], told["mergeMethod"]) == ("DRAINING", "parallel", "squash")
    told = standing.wait_for(standing.desk.ask("updateQueue", state="Running", mode="single", concurrency=7.0))
    assert (told["state"], told["mode"]) == ("RUNNING", "single")
    assert standing.desk.answers[-1].text.count('"concurrency":7,') == 1


@asynchronous
async def test_nothing_to_change_is_no_error(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        before = await desk.ask("getQueue")
        assert await desk.ask("updateQueue") | {"enqueuedPullRequests": []} == before


@asynchronous
async def test_any_setting_can_be_given_at_the_start(tmp_path: Path):
    given = {name: setting.good[-1] for name, setting in SETTINGS.items()} | {"requiredStatuses": ["a"]}
    async with a_desk(tmp_path, **given) as desk:
        queue = await desk.ask("getQueue")
        assert {name: queue[name] for name in given} == given


@asynchronous
async def test_the_override_of_required_statuses_is_dropped_in_two_ways(tmp_path: Path):
    async with a_desk(tmp_path, requiredStatuses=["lint"]) as desk:
        desk.world.open(1, 2)
        await desk.submit(1)
        run = await desk.run(1)
        assert (run["requiredStatuses"], run["requiredStatusesSource"]) == (["lint"], "merge_instance")
        assert (await desk.ask("updateQueue", deleteRequiredStatuses=False))["requiredStatuses"] == ["lint"]
        assert (await desk.ask("updateQueue", deleteRequiredStatuses=True))["requiredStatuses"] is None
        await desk.submit(2)
        run = await desk.run(2)
        assert (run["requiredStatuses"], run["requiredStatusesSource"]) == (["unit"], "service_config")
        assert (await desk.ask("updateQueue", requiredStatuses=["a"]))["requiredStatuses"] == ["a"]
        assert (await desk.ask("updateQueue", requiredStatuses=None))["requiredStatuses"] is None
        assert await desk.refuses("updateQueue", deleteRequiredStatuses=None) == "invalid_request"
