"""The dashboard can be imported anywhere, shows every metric, and asks for none that there is not."""

import re
from itertools import combinations

import pytest

from tests.deploy.files import DEPLOY, Table, read_json
from tests.deploy.metrics import EXPLAINED, asked_for, explained_by, known

BOARD: Table = read_json(DEPLOY / "grafana" / "mergeyard.json")
PANELS: list[Table] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES: list[str] = [target["expr"] for panel in PANELS for target in panel["targets"]]
SHOWN = set[str]().union(*map(asked_for, QUERIES))
OWN_VARIABLES = {variable["name"] for variable in BOARD["templating"]["list"]}
OF_GRAFANA = {"__rate_interval"}

every_panel = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


def overlap(one: Table, other: Table) -> bool:
    apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    return not (apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"])


def test_it_is_imported_as_a_new_one_with_a_name_of_its_own():
    assert (BOARD["id"], BOARD["uid"], BOARD["title"]) == (None, "mergeyard", "Mergeyard")
    assert BOARD["schemaVersion"] >= 41


def test_every_metric_is_shown():
    assert explained_by(SHOWN) == EXPLAINED.keys()


def test_nothing_is_asked_for_that_there_is_not():
    assert SHOWN - known() == set()


def test_every_variable_that_is_used_is_there():
    assert {name for query in QUERIES for name in re.findall(r"\$(\w+)", query)} <= OWN_VARIABLES | OF_GRAFANA


@every_panel
def test_a_panel_explains_itself_and_takes_the_data_source_that_was_chosen(panel: Table):
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert panel["description"].endswith(".")
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_panels_have_numbers_of_their_own_and_a_place_of_their_own():
    numbers = [panel["id"] for panel in BOARD["panels"]]
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert [pair for pair in combinations(places, 2) if overlap(*pair)] == []
