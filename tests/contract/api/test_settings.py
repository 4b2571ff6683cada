"""Every setting of a queue: its default, the bounds of its range, and that an invalid value changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.api.harness import SharedApi, api_with_queue, api_without_queue, problem_of, shared_api
from tests.contract.api.spec_tables import DEFAULTS, SETTINGS, UNKNOWN_SETTINGS
from tests.support.asynchronous import asynchronous


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedApi]:
    with shared_api(tmp_path_factory.mktemp("settings")) as standing:
        yield standing


@asynchronous
async def test_a_new_queue_has_the_default_settings(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        created = await api.ask("createQueue")
        assert {name: created[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", SETTINGS)
def test_a_valid_value_is_stored_and_returned(standing: SharedApi, name: str):
    for value in SETTINGS[name].good:
        response = standing.wait_for(standing.api.ask("updateQueue", **{name: value}))
        assert response[name] == value
        assert standing.wait_for(standing.api.ask("getQueue"))[name] == value
        assert type(response[name]) is type(value)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_invalid_value_changes_nothing_including_other_settings_in_the_request(standing: SharedApi, name: str):
    before = standing.wait_for(standing.api.ask("getQueue"))
    for value in SETTINGS[name].bad:
        beside: dict[str, Any] = {"commentsEnabled": not before["commentsEnabled"], "state": "PAUSED"}
        response = standing.wait_for(standing.api.post("updateQueue", **beside | {name: value}))
        problem = problem_of(response)
        assert problem["code"] == "invalid_request", value
        assert problem["errors"][0]["pointer"].startswith(f"/{name}"), value
    assert standing.wait_for(standing.api.ask("getQueue")) == before


@pytest.mark.parametrize("name", UNKNOWN_SETTINGS)
def test_an_unknown_setting_is_refused(standing: SharedApi, name: str):
    for endpoint in ("createQueue", "updateQueue"):
        assert standing.wait_for(standing.api.refusal_code(endpoint, **{name: 1})) == "unknown_field"


@asynchronous
async def test_the_common_member_pr_is_ignored(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        created = await api.ask("createQueue", pr={"number": 1}, concurrency=7)
        assert created["concurrency"] == 7
        assert await api.ask("updateQueue", pr=None) | {"enqueuedPullRequests": []} == created


@pytest.mark.long
@asynchronous
async def test_settings_without_effect_keep_a_running_test(tmp_path: Path):
    names = ("extensionEnabled", "stateLabelsEnabled", "allowedBotSubmitters", "batchingRules")
    given = {name: SETTINGS[name].good[-1] for name in names} | {"testBranchConstructionMode": "another"}
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        before = await api.pull_request(1)
        await api.ask("updateQueue", **given)
        assert await api.pull_request(1) == before


def test_a_new_queue_cannot_be_created_with_a_state(standing: SharedApi):
    for name, value in (("state", "PAUSED"), ("deleteRequiredStatuses", True)):
        assert standing.wait_for(standing.api.refusal_code("createQueue", **{name: value})) == "unknown_field"


@pytest.mark.parametrize("state", ["SWITCHING_MODES", "STOPPED", "", None, 1])
def test_only_three_states_can_be_asked_for(standing: SharedApi, state: object):
    assert standing.wait_for(standing.api.refusal_code("updateQueue", state=state)) == "invalid_request"


def test_enum_values_are_accepted_in_any_case_and_returned_in_one(standing: SharedApi):
    response = standing.wait_for(
        standing.api.ask("updateQueue", state="draining", mode="PARALLEL", mergeMethod="Squash")
    )
    assert (response["state"], response["mode"], response["mergeMethod"]) == ("DRAINING", "parallel", "squash")
    response = standing.wait_for(standing.api.ask("updateQueue", state="Running", mode="single", concurrency=7.0))
    assert (response["state"], response["mode"]) == ("RUNNING", "single")
    assert standing.api.responses[-1].text.count('"concurrency":7,') == 1


@asynchronous
async def test_an_update_without_changes_is_no_error(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        before = await api.ask("getQueue")
        after = await api.ask("updateQueue")
        assert after == {name: before[name] for name in after}


@asynchronous
async def test_any_setting_can_be_given_at_the_start(tmp_path: Path):
    given: dict[str, Any] = {name: setting.good[-1] for name, setting in SETTINGS.items()} | {"requiredStatuses": ["a"]}
    async with api_with_queue(tmp_path, **given) as api:
        queue = await api.ask("getQueue")
        assert {name: queue[name] for name in given} == given


@asynchronous
async def test_the_override_of_required_statuses_can_be_removed_in_two_ways(tmp_path: Path):
    async with api_with_queue(tmp_path, requiredStatuses=["lint"]) as api:
        api.world.open(1, 2)
        await api.submit(1)
        run = await api.run(1)
        assert (run["requiredStatuses"], run["requiredStatusesSource"]) == (["lint"], "merge_instance")
        assert (await api.ask("updateQueue", deleteRequiredStatuses=False))["requiredStatuses"] == ["lint"]
        assert (await api.ask("updateQueue", deleteRequiredStatuses=True))["requiredStatuses"] is None
        await api.submit(2)
        run = await api.run(2)
        assert (run["requiredStatuses"], run["requiredStatusesSource"]) == (["unit"], "service_config")
        assert (await api.ask("updateQueue", requiredStatuses=["a"]))["requiredStatuses"] == ["a"]
        assert (await api.ask("updateQueue", requiredStatuses=None))["requiredStatuses"] is None
        assert await api.refusal_code("updateQueue", deleteRequiredStatuses=None) == "invalid_request"
